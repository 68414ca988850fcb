// Measures the time of calls on a device. Tests replace it by a fake, since nothing else in tuning needs a GPU.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/engine/engine.hpp"

namespace tilewright::tune {

class Timer {
 public:
  virtual ~Timer() = default;

  /// Runs the calls back to back in this order, waits, and returns the device time of each call in microseconds. May
  /// run them twice.
  virtual std::vector<double> time(std::span<const engine::PreparedCall> calls) = 0;
};

/// A timer that uses runtime::CallTimer. Refused for the emulator, whose times are meaningless.
Result<std::shared_ptr<Timer>> make_timer(const std::shared_ptr<runtime::Device>& device);

}  // namespace tilewright::tune
