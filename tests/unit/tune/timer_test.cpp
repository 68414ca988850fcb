// The GPU timer with a fake driver, on which an event is recorded in 1.5 ms and everything else takes no time.
#include "tilewright/tune/timer.hpp"

#include <gtest/gtest.h>

#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::tune {
namespace {

using namespace engine;  // for the shared fakes of the engine's tests

/// Calls of empty problems, which launch nothing.
std::vector<PreparedCall> empty_calls(std::size_t count) {
  Engine engine(emulator_options());
  const HostProblem nothing(0, 8, 8);
  return std::vector<PreparedCall>(count, engine.prepare(nothing.gemm));
}

TEST(GpuTimer, ReturnsOneTimePerCall) {
  const auto device = runtime::open_cuda_device(0, {}, runtime::DriverOptions{.library_path = FAKE_DRIVER_PATH});
  const auto timer = make_timer(device);
  ASSERT_TRUE(timer);
  EXPECT_EQ((*timer)->time(empty_calls(3)), std::vector<double>(3, 1500.0));
  EXPECT_EQ((*timer)->time(empty_calls(12)), std::vector<double>(12, 1500.0)) << "events are reused";
  EXPECT_EQ(device->allocated_bytes(), 0U);
}

TEST(GpuTimer, WorksWithoutFreeDeviceMemory) {
  const runtime::MemoryPoolOptions small{.initial_bytes = 0, .maximum_bytes = 1 << 20};
  const auto device = runtime::open_cuda_device(0, small, runtime::DriverOptions{.library_path = FAKE_DRIVER_PATH});
  EXPECT_EQ((*make_timer(device))->time(empty_calls(2)).size(), 2U);
}

TEST(GpuTimer, IsRefusedForTheEmulator) {
  const auto timer = make_timer(Engine(emulator_options()).device());
  ASSERT_FALSE(timer);
  EXPECT_EQ(timer.reason(), "kernels cannot be timed on emulator:sm_80: tune on a GPU");
}

TEST(DeviceIdentity, HasModelSmCountArchitectureAndDriver) {
  const auto device = runtime::open_cuda_device(0, {}, runtime::DriverOptions{.library_path = FAKE_DRIVER_PATH});
  const runtime::DeviceProperties& properties = device->properties();
  EXPECT_EQ(device_identity(*device),
            fmt::format("{}, {} SMs, {}, driver 13", properties.name, properties.sm_count, properties.target.name()));
}

}  // namespace
}  // namespace tilewright::tune
