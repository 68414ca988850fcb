// Element types: their names, widths and classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

enum class DType : std::uint8_t {
  f64,
  f32,
  tf32,  // stored as f32; tensor cores read 19 of its 32 bits. The type of an operand of an instruction, not of a
         // tensor.
  f16,
  bf16,
  s32,
  s8,
  u8,
  e4m3,
  e5m2,
  // Types of operands of instructions; no tensor has them yet.
  s4,
  u4,
  b1,
};

inline constexpr int kDTypeCount = 13;

/// Width in memory. tf32 occupies a 32-bit word.
int bits(DType type);
/// @pre bits(type) is a multiple of 8: the type is not s4, u4 or b1
int bytes(DType type);

/// The name in PTX: "f16", "bf16", ...
std::string_view name(DType type);

/// The type with that PTX name. Also accepts float16, bfloat16, float32, float64, int8, uint8, int32, half, float,
/// double, i8, float8_e4m3fn, fp8_e4m3, float8_e5m2, fp8_e5m2, int4, i4, uint4, uint1, bit.
std::optional<DType> parse_dtype(std::string_view text);

bool is_float(DType type);
bool is_integer(DType type);
/// e4m3 or e5m2. An instruction that takes one of them as A takes either of them as B.
bool is_fp8(DType type);

/// The type's name in CUDA C++, as the device headers define it: "double", "float", "tilewright::half_t", ... tf32
/// has "float". Empty for s4, u4 and b1.
std::string_view cuda_name(DType type);

}  // namespace tilewright
