// The host's rounding mode and its treatment of subnormal numbers, set for the scope of one instruction.
#pragma once

#include "tilewright/emulator/instructions/rounding.hpp"

namespace tilewright::emulator {

/// Whether FloatEnvironment can make the host flush subnormal inputs and results as .ftz does. x86 flushes a result
/// that is subnormal after rounding to 24 bits with an unbounded exponent, which is what a GPU does, too.
#if defined(__x86_64__)
inline constexpr bool kHostFlushes = true;
#else
inline constexpr bool kHostFlushes = false;
#endif

/// Arithmetic of the scope whose operands are loaded from memory, and whose results are stored, within it has the
/// rounding mode and, where kHostFlushes, the flushing of the FloatMode.
class FloatEnvironment {
 public:
#if defined(__x86_64__)
  explicit FloatEnvironment(const FloatMode& mode) {
    constexpr std::uint32_t kAllExceptionsMasked = 0x1f80;
    constexpr std::uint32_t kFlushesInputsAndResults = 0x8040;
    constexpr std::uint32_t kRoundings[] = {0x0000, 0x6000, 0x2000, 0x4000};
    asm volatile("stmxcsr %0" : "=m"(before_));
    load(kAllExceptionsMasked | kRoundings[static_cast<int>(mode.rounding)] |
         (mode.flush ? kFlushesInputsAndResults : 0));
  }
  ~FloatEnvironment() { load(before_); }

 private:
  static void load(std::uint32_t control) { asm volatile("ldmxcsr %0" : : "m"(control) : "memory"); }

  std::uint32_t before_ = 0;
#else
  explicit FloatEnvironment(const FloatMode& mode) : rounding_(mode.rounding) {}

 private:
  RoundingScope rounding_;
#endif
 public:
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;
};

}  // namespace tilewright::emulator
