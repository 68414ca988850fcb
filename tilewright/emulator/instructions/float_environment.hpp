// The host's rounding mode and its treatment of subnormal numbers.
#pragma once

#include "tilewright/emulator/instructions/rounding.hpp"

namespace tilewright::emulator {

/// Whether FloatEnvironment can make the host flush subnormal inputs and results as .ftz does. x86 flushes a result
/// that is subnormal after rounding to 24 bits with an unbounded exponent, which is what a GPU does, too.
#if defined(__x86_64__)
inline constexpr bool kHostFlushes = true;

class FloatControl {
 public:
  static std::uint32_t load() {
    std::uint32_t control = 0;
    asm volatile("stmxcsr %0" : "=m"(control));
    return control;
  }
  static void store(std::uint32_t control) { asm volatile("ldmxcsr %0" : : "m"(control) : "memory"); }
  static std::uint32_t of(const FloatMode& mode) {
    constexpr std::uint32_t kAllExceptionsMasked = 0x1f80;
    constexpr std::uint32_t kFlushesInputsAndResults = 0x8040;
    constexpr std::uint32_t kRoundings[] = {0x0000, 0x6000, 0x2000, 0x4000};
    return kAllExceptionsMasked | kRoundings[static_cast<int>(mode.rounding)] |
           (mode.flush ? kFlushesInputsAndResults : 0);
  }
};

/// The host's arithmetic in the scope is that of FloatMode(), whatever the program around the emulator has chosen.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() { FloatControl::store(FloatControl::of(FloatMode())); }
  ~DefaultFloatEnvironment() { FloatControl::store(before_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::uint32_t before_ = FloatControl::load();
};

/// Arithmetic of the scope whose operands are loaded from memory, and whose results are stored, within it has the
/// rounding mode and the flushing of the FloatMode. Inside of a DefaultFloatEnvironment: the environment before is not
/// read, which would wait for the last change of it.
class FloatEnvironment {
 public:
  explicit FloatEnvironment(const FloatMode& mode) { FloatControl::store(FloatControl::of(mode)); }
  ~FloatEnvironment() { FloatControl::store(FloatControl::of(FloatMode())); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;
};
#else
inline constexpr bool kHostFlushes = false;

class DefaultFloatEnvironment {
  RoundingScope rounding_{Rounding::nearest};
};

class FloatEnvironment {
 public:
  explicit FloatEnvironment(const FloatMode& mode) : rounding_(mode.rounding) {}

 private:
  RoundingScope rounding_;
};
#endif

}  // namespace tilewright::emulator
