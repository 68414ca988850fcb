// Element types: their names, widths and classes. One row a type.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

enum class DType : std::uint8_t {
  f64,
  f32,
  tf32,  // f32 storage of which an instruction reads 19 bits: a math type, never a tensor's
  f16,
  bf16,
  s32,
  s8,
  u8,
  e4m3,
  e5m2,
  // Operands of instructions only, so far: no tensor has them.
  s4,
  u4,
  b1,
};

inline constexpr int kDTypeCount = 13;

/// Width in memory. tf32 occupies a 32-bit word.
int bits(DType type);
/// @pre whole bytes: neither s4, u4 nor b1
int bytes(DType type);

/// "f16", "bf16", ... as in PTX.
std::string_view name(DType type);

/// The type of that name; also accepts float16, bfloat16, float32, float64, int8, uint8, int32, half, float, double,
/// i8, float8_e4m3fn, fp8_e4m3, float8_e5m2, fp8_e5m2, int4, i4, uint4, uint1, bit.
std::optional<DType> parse_dtype(std::string_view text);

bool is_float(DType type);
bool is_integer(DType type);
/// e4m3 or e5m2, which instructions mix freely.
bool is_fp8(DType type);

/// The spelling in CUDA C++ that the device headers define: "double", "float", "tilewright::half_t", ...; empty for the
/// types that no tensor has, tf32 apart.
std::string_view cuda_name(DType type);

}  // namespace tilewright
