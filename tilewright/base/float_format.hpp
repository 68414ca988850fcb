// The 16-bit and 19-bit float formats on the host: exact conversions with the rounding that the GPU uses.
#pragma once

#include <cstdint>

namespace tilewright {

float f16_to_f32(std::uint16_t bits);
/// Round to nearest even; overflow gives infinity; NaN stays NaN (0x7fff, as cvt.rn.f16.f32 gives).
std::uint16_t f32_to_f16(float value);
/// As f32_to_f16 with a single rounding from f64.
std::uint16_t f64_to_f16(double value);

float bf16_to_f32(std::uint16_t bits);
/// Round to nearest even; NaN gives 0x7fff, as cvt.rn.bf16.f32 gives.
std::uint16_t f32_to_bf16(float value);
std::uint16_t f64_to_bf16(double value);

/// Round to nearest, ties away from zero, to 10 fraction bits: cvt.rna.tf32.f32.
float round_to_tf32(float value);

}  // namespace tilewright
