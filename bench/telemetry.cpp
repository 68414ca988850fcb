// Loads NVML at run time. Without NVML there is no telemetry, and no error.
#include "telemetry.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tilewright/base/median.hpp"
#include "tilewright/compile/shared_library.hpp"

namespace tilewright::bench {
namespace {

constexpr std::chrono::milliseconds kPeriod{5};
constexpr int kSmClock = 1;    // NVML_CLOCK_SM
constexpr int kGpuSensor = 0;  // NVML_TEMPERATURE_GPU

struct Nvml {
  using Gpu = void*;
  int (*init)();
  int (*driver_version)(char*, unsigned);
  int (*gpu_by_index)(unsigned, Gpu*);
  int (*clock)(Gpu, int, unsigned* mhz);
  int (*power)(Gpu, unsigned* milliwatts);
  int (*temperature)(Gpu, int, unsigned* celsius);
};

std::optional<Nvml> open_nvml() {
  const auto library = compile::SharedLibrary::open("libnvidia-ml.so.1", compile::SharedLibrary::Load::now);
  if (!library) return std::nullopt;
  Nvml nvml{};
  const auto resolve = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library->symbol(symbol));
    return function != nullptr;
  };
  const bool complete =
      resolve(nvml.init, "nvmlInit_v2") && resolve(nvml.driver_version, "nvmlSystemGetDriverVersion") &&
      resolve(nvml.gpu_by_index, "nvmlDeviceGetHandleByIndex_v2") && resolve(nvml.clock, "nvmlDeviceGetClockInfo") &&
      resolve(nvml.power, "nvmlDeviceGetPowerUsage") && resolve(nvml.temperature, "nvmlDeviceGetTemperature");
  if (!complete || nvml.init() != 0) return std::nullopt;
  return nvml;
}

}  // namespace

struct TelemetryRecorder::State {
  std::vector<double> clock_mhz, power_w, temperature_c;
  std::atomic<bool> stopping = false;
  std::thread thread;

  void sample(const Nvml& nvml, Nvml::Gpu gpu) {
    unsigned mhz = 0;
    unsigned milliwatts = 0;
    unsigned celsius = 0;
    if (nvml.clock(gpu, kSmClock, &mhz) != 0 || nvml.power(gpu, &milliwatts) != 0 ||
        nvml.temperature(gpu, kGpuSensor, &celsius) != 0) {
      return;
    }
    clock_mhz.push_back(mhz);
    power_w.push_back(milliwatts / 1000.0);
    temperature_c.push_back(celsius);
  }
};

TelemetryRecorder::TelemetryRecorder(int ordinal) : state_(std::make_unique<State>()) {
  state_->thread = std::thread([state = state_.get(), ordinal] {
    const std::optional<Nvml> nvml = open_nvml();
    Nvml::Gpu gpu = nullptr;
    if (!nvml || nvml->gpu_by_index(static_cast<unsigned>(ordinal), &gpu) != 0) return;
    while (!state->stopping) {
      state->sample(*nvml, gpu);
      std::this_thread::sleep_for(kPeriod);
    }
  });
}

TelemetryRecorder::~TelemetryRecorder() { stop(); }

Telemetry TelemetryRecorder::stop() {
  state_->stopping = true;
  if (state_->thread.joinable()) state_->thread.join();
  if (state_->clock_mhz.empty()) return {};
  return {
      .samples = static_cast<int>(state_->clock_mhz.size()),
      .sm_clock_mhz_median = median(state_->clock_mhz),
      .sm_clock_mhz_min = std::ranges::min(state_->clock_mhz),
      .power_w_median = median(state_->power_w),
      .power_w_max = std::ranges::max(state_->power_w),
      .temperature_c_max = std::ranges::max(state_->temperature_c),
  };
}

std::string kernel_driver_version() {
  const std::optional<Nvml> nvml = open_nvml();
  std::array<char, 96> text{};
  if (!nvml || nvml->driver_version(text.data(), static_cast<unsigned>(text.size())) != 0) return "";
  return text.data();
}

}  // namespace tilewright::bench
