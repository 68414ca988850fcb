// The 8-bit floats e4m3 and e5m2.
#pragma once

#include <cstdint>

namespace tilewright::emulator {

/// 4 bits of exponent, no infinity, 0x7f and 0xff are NaN.
float e4m3_to_f32(std::uint8_t bits);
/// 5 bits of exponent, as the upper half of f16.
float e5m2_to_f32(std::uint8_t bits);

/// Round to nearest even; past the largest finite value gives it (cvt.rn.satfinite); NaN gives 0x7f.
std::uint8_t f32_to_e4m3(float value);
std::uint8_t f32_to_e5m2(float value);

}  // namespace tilewright::emulator
