// Long work that is asked to end: how long it takes to.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tilewright/base/interruption.hpp"

namespace tilewright {

/// What the tests' interrupt check throws; no Error, as little as what a binding to another language throws.
struct EndAsked {};

/// What the assertions allow; the aim is 200 ms on a machine that does nothing else.
inline constexpr std::chrono::milliseconds kPatience{500};

/// Runs `work` with a check that throws EndAsked from `delay` on. Returns how long after that `work` has ended, with
/// that exception; fails the caller where it ends otherwise.
template <class Work>
std::chrono::milliseconds time_to_end(const Work& work,
                                      std::chrono::milliseconds delay = std::chrono::milliseconds(50)) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point asked = Clock::now() + delay;
  const ScopedInterruptCheck check([asked] {
    if (Clock::now() >= asked) throw EndAsked();
  });
  EXPECT_THROW(work(), EndAsked);
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - asked);
}

}  // namespace tilewright
