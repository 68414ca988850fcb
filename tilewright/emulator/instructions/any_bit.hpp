// Whether a vector has any bit set, in one instruction where the host has one.
#pragma once

#include <cstdint>
#include <cstring>

namespace tilewright::emulator {

/// Vectors of 64 bytes must be tested in code for AVX-512. They are passed by reference, as their ABI depends on the
/// target.
template <class Vector>
[[gnu::always_inline]] inline bool any_bit(const Vector& value) {
#if defined(__x86_64__) && !defined(__clang__)
  if constexpr (sizeof(Vector) == 64) {
    std::uint16_t lanes;
    asm("vptestmd %1, %1, %0" : "=Yk"(lanes) : "v"(value));
    return lanes != 0;
  }
#endif
  std::uint64_t words[sizeof(Vector) / 8], all = 0;
  std::memcpy(words, &value, sizeof(value));
  for (const std::uint64_t word : words) all |= word;
  return all != 0;
}

}  // namespace tilewright::emulator
