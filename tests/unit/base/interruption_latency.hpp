// Measures how long long work takes to end after an interruption.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tilewright/base/interruption.hpp"

namespace tilewright {

/// The exception of the tests' interrupt check. Not derived from Error, because exceptions of language bindings are
/// not.
struct TestInterruption {};

/// The limit for assertions. The aim is 200 ms on an idle machine.
inline constexpr std::chrono::milliseconds kMaxInterruptionLatency{500};

/// Runs `work` with a check that throws TestInterruption once `delay` has passed. Returns the time from then until
/// `work` ended. Fails the test unless it ended with that exception.
template <class Work>
std::chrono::milliseconds interruption_latency(const Work& work,
                                               std::chrono::milliseconds delay = std::chrono::milliseconds(50)) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point interrupted = Clock::now() + delay;
  const ScopedInterruptCheck check([interrupted] {
    if (Clock::now() >= interrupted) throw TestInterruption();
  });
  EXPECT_THROW(work(), TestInterruption);
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - interrupted);
}

}  // namespace tilewright
