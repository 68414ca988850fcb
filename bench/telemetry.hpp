// Clock, power and temperature of the GPU during a measurement, read through NVML if it is installed.
#pragma once

#include <memory>
#include <string>

namespace tilewright::bench {

struct Telemetry {
  int samples = 0;  // 0 if NVML was not found; the other members are then meaningless
  double sm_clock_mhz_median = 0.0;
  double sm_clock_mhz_min = 0.0;
  double power_w_median = 0.0;
  double power_w_max = 0.0;
  double temperature_c_max = 0.0;
};

/// Reads the values every few milliseconds in a separate thread, from construction until stop().
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

/// The driver's version, such as "580.159.04"; empty without NVML.
std::string kernel_driver_version();

}  // namespace tilewright::bench
