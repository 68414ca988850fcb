// How long calls take on a device. Tests replace it: nothing else of tuning needs a GPU.
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

  /// Runs the calls back to back, in order, and waits for them. Each one's time on the device, in microseconds.
  virtual std::vector<double> time(std::span<const engine::PreparedCall> calls) = 0;
};

/// By events on a GPU. Refused for the emulator, whose time means nothing.
Result<std::shared_ptr<Timer>> make_timer(const std::shared_ptr<runtime::Device>& device);

}  // namespace tilewright::tune
