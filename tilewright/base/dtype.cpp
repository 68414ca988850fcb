#include "tilewright/base/dtype.hpp"

#include <array>

#include "tilewright/base/error.hpp"

namespace tilewright {
namespace {

struct Row {
  DType type;
  int bits;
  bool is_float;
  std::string_view name;
  std::string_view long_name;
  std::string_view c_name;
  std::string_view cuda_name;
};

constexpr std::array<Row, kDTypeCount> kRows{{
    {DType::f64, 64, true, "f64", "float64", "double", "double"},
    {DType::f32, 32, true, "f32", "float32", "float", "float"},
    {DType::tf32, 32, true, "tf32", "tfloat32", "tfloat32", "float"},
    {DType::f16, 16, true, "f16", "float16", "half", "tilewright::half_t"},
    {DType::bf16, 16, true, "bf16", "bfloat16", "bfloat16", "tilewright::bfloat16_t"},
    {DType::s32, 32, false, "s32", "int32", "int", "tilewright::int32_t"},
    {DType::s8, 8, false, "s8", "int8", "i8", "tilewright::int8_t"},
    {DType::u8, 8, false, "u8", "uint8", "uint8", "tilewright::uint8_t"},
    {DType::e4m3, 8, true, "e4m3", "float8_e4m3fn", "fp8_e4m3", "tilewright::e4m3_t"},
    {DType::e5m2, 8, true, "e5m2", "float8_e5m2", "fp8_e5m2", "tilewright::e5m2_t"},
    {DType::s4, 4, false, "s4", "int4", "i4", ""},
    {DType::u4, 4, false, "u4", "uint4", "uint4", ""},
    {DType::b1, 1, false, "b1", "uint1", "bit", ""},
}};

const Row& row(DType type) {
  const auto index = static_cast<std::size_t>(type);
  TILEWRIGHT_CHECK(index < kRows.size() && kRows[index].type == type, "dtype {} has no row", index);
  return kRows[index];
}

}  // namespace

int bits(DType type) { return row(type).bits; }
int bytes(DType type) {
  TILEWRIGHT_CHECK(bits(type) % 8 == 0, "{} has {} bits, which is not a whole number of bytes", name(type), bits(type));
  return bits(type) / 8;
}
std::string_view name(DType type) { return row(type).name; }
std::string_view cuda_name(DType type) { return row(type).cuda_name; }
bool is_float(DType type) { return row(type).is_float; }
bool is_integer(DType type) { return !row(type).is_float; }
bool is_fp8(DType type) { return type == DType::e4m3 || type == DType::e5m2; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const Row& candidate : kRows) {
    if (text == candidate.name || text == candidate.long_name || text == candidate.c_name) return candidate.type;
  }
  return std::nullopt;
}

}  // namespace tilewright
