// What the GPU did while it was measured: clock, power, temperature, read through NVML where that exists.
#pragma once

#include <memory>
#include <string>

namespace tilewright::bench {

struct Telemetry {
  int samples = 0;  // 0: NVML was not there; the rest means nothing
  double sm_clock_mhz_median = 0.0;
  double sm_clock_mhz_least = 0.0;
  double power_w_median = 0.0;
  double power_w_most = 0.0;
  double temperature_c_most = 0.0;
};

/// Reads clocks in a thread of its own every few milliseconds, from construction until stop().
class TelemetryRecorder {
 public:
  explicit TelemetryRecorder(int ordinal);
  TelemetryRecorder(const TelemetryRecorder&) = delete;
  TelemetryRecorder& operator=(const TelemetryRecorder&) = delete;
  ~TelemetryRecorder();

  Telemetry stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// "580.159.04"; empty without NVML.
std::string kernel_driver_version();

}  // namespace tilewright::bench
