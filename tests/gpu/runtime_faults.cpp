// Faults that invalidate a CUDA context or a stream capture, each in a process or stream of its own.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "capture.hpp"
#include "gpu_test.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::runtime {
namespace {

using testing::HasSubstr;

constexpr const char* kStoreSource = R"(
struct Parameters { int* to; };
extern "C" __global__ void store_one(Parameters p) { *p.to = 1; }
)";

using RuntimeFaults = GpuTest;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const DriverError& error) {
    return error.what();
  }
  return "";
}

/// Writes to address 8, then exits with 0 if every later call reports that first error.
void fault_and_report() {
  const auto device = open_cuda_device(0);
  const auto kernel = load_kernel(*device, "store_one", kStoreSource);
  const DeviceAddress nowhere = 8;
  kernel->launch({.block = {1}}, parameter_bytes(nowhere));
  const std::string first = error_of([&] { device->synchronize(nullptr); });
  if (first.find("700") == std::string::npos) std::exit(1);
  if (error_of([&] { device->allocate(16, nullptr); }) != first) std::exit(2);
  if (error_of([&] { kernel->launch({.block = {1}}, parameter_bytes(nowhere)); }) != first) std::exit(3);
  if (error_of([&] { device->synchronize(nullptr); }) != first) std::exit(4);
  std::exit(0);
}

TEST_F(RuntimeFaults, AStickyErrorIsReportedByEveryLaterCallAndTheProcessExits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // executes the test program again: CUDA does not work after a fork
  EXPECT_EXIT(fault_and_report(), testing::ExitedWithCode(0), "");
}

TEST_F(RuntimeFaults, ForkedChildGetsAClearErrorAndTheParentGoesOn) {
  const pid_t pid = fork();
  if (pid == 0) {
    const std::string error = error_of([&] { device_->allocate(16, nullptr); });
    _exit(error.find("fork") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_NO_THROW(DeviceBuffer(device_, 16));
}

TEST_F(RuntimeFaults, AllocationAndFreeUnderCaptureLeaveItValid) {
  const Capture capture;
  const auto kernel = load_kernel(*device_, "store_one", kStoreSource);
  for (const int mode : {0, 1, 2}) {  // global, thread-local, relaxed
    SCOPED_TRACE(mode);
    const Stream stream(device_->context());
    const Stream elsewhere(device_->context());
    const DeviceBuffer target(device_, sizeof(int));
    DeviceBuffer freed(device_, 64, stream.handle());
    ASSERT_EQ(capture.begin(stream.handle(), mode), 0);
    EXPECT_TRUE(stream.is_capturing());
    EXPECT_THROW(device_->allocate(64, stream.handle()), InvalidArgument);
    EXPECT_NO_THROW(DeviceBuffer(device_, 64, elsewhere.handle()));
    freed = DeviceBuffer();
    const DeviceAddress parameters = target.address();
    kernel->launch({.block = {1}, .stream = stream.handle()}, parameter_bytes(parameters));
    void* graph = nullptr;
    EXPECT_EQ(capture.end(stream.handle(), &graph), 0);
    EXPECT_NE(graph, nullptr);
    EXPECT_EQ(capture.destroy(graph), 0);
  }
}

TEST_F(RuntimeFaults, LoadAndUnloadUnderCaptureLeaveItValid) {
  const Capture capture;
  for (const int mode : {0, 1, 2}) {
    SCOPED_TRACE(mode);
    const Stream stream(device_->context());
    ASSERT_EQ(capture.begin(stream.handle(), mode), 0);
    EXPECT_NO_THROW(load_kernel(*device_, "store_one", kStoreSource));
    void* graph = nullptr;
    EXPECT_EQ(capture.end(stream.handle(), &graph), 0);
    capture.destroy(graph);
  }
}

TEST_F(RuntimeFaults, SpecialStreamsWork) {
  const auto kernel = load_kernel(*device_, "store_one", kStoreSource);
  for (const std::uintptr_t special : {0, 1, 2}) {  // null, legacy, per-thread
    const auto stream = reinterpret_cast<StreamHandle>(special);
    const DeviceBuffer buffer(device_, sizeof(int), stream);
    const DeviceAddress parameters = buffer.address();
    kernel->launch({.block = {1}, .stream = stream}, parameter_bytes(parameters));
    int value = 0;
    device_->copy_out(&value, buffer.address(), sizeof value, stream);
    device_->synchronize(stream);
    EXPECT_EQ(value, 1);
  }
}

}  // namespace
}  // namespace tilewright::runtime
