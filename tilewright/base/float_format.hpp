// The 8-bit, 16-bit and 19-bit float formats on the host: exact conversions with the rounding that the GPU uses.
#pragma once

#include <cstdint>

namespace tilewright {

float f16_to_f32(std::uint16_t bits);
/// Round to nearest even; overflow gives infinity; NaN stays NaN (0x7fff, as cvt.rn.f16.f32 gives).
std::uint16_t f32_to_f16(float value);
/// f32_to_f16 for f64, with a single rounding.
std::uint16_t f64_to_f16(double value);

float bf16_to_f32(std::uint16_t bits);
/// Round to nearest even; NaN gives 0x7fff, as cvt.rn.bf16.f32 gives.
std::uint16_t f32_to_bf16(float value);
std::uint16_t f64_to_bf16(double value);

// The 8-bit formats of "FP8 Formats for Deep Learning" (Micikevicius et al., 2022), as cvt.rn.satfinite converts to
// them: round to nearest even, saturate to the largest finite value, NaN gives 0x7f.

/// 4 bits of exponent, 3 of fraction; no infinity, 0x7f and 0xff are NaN, the largest value is 448.
float e4m3_to_f32(std::uint8_t bits);
std::uint8_t f64_to_e4m3(double value);
/// 5 bits of exponent, 2 of fraction: the upper half of f16, infinities included; the largest finite value is 57344.
float e5m2_to_f32(std::uint8_t bits);
std::uint8_t f64_to_e5m2(double value);

/// Round to nearest, ties away from zero, to 10 fraction bits: cvt.rna.tf32.f32.
float round_to_tf32(float value);

}  // namespace tilewright
