// Opening the driver, its errors, the state after a fatal error, forks.
#include "tilewright/runtime/driver.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.hpp"

namespace tilewright::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using DriverTest = FakeDriverTest;

TEST_F(DriverTest, MissingLibraryIsExplained) {
  const std::string message = message_of<ToolchainNotFound>([] { Driver driver({.library_path = "/no/libcuda.so"}); });
  EXPECT_THAT(message, AllOf(HasSubstr("/no/libcuda.so"), HasSubstr("install"), HasSubstr("emulator:sm_80")));
}

TEST_F(DriverTest, DriverBeforeCuda12IsRefusedWithItsVersion) {
  const std::string message = message_of<ToolchainNotFound>([] { Driver driver({.library_path = OLD_DRIVER_PATH}); });
  EXPECT_THAT(message, AllOf(HasSubstr("CUDA 11.8"), HasSubstr("12.0")));
}

TEST_F(DriverTest, DriverThatReportsAnOldVersionIsRefused) {
  state_->version = 11070;
  Driver driver(kFakeDriver);
  EXPECT_THAT(message_of<ToolchainNotFound>([&] { driver.initialize(); }), HasSubstr("CUDA 11.7"));
}

TEST_F(DriverTest, ToolkitStubIsDetected) {
  state_->failures["cuGetProcAddress"] = kStubLibrary;
  EXPECT_THAT(message_of<ToolchainNotFound>([] { Driver driver(kFakeDriver); }), HasSubstr("stub"));
}

TEST_F(DriverTest, MissingFunctionIsNamed) {
  state_->failures["find cuLaunchKernelEx"] = 1;
  EXPECT_THAT(message_of<DriverError>([] { Driver driver(kFakeDriver); }), HasSubstr("cuLaunchKernelEx"));
}

TEST_F(DriverTest, OptionalFunctionMayBeMissing) {
  state_->failures["find cuKernelGetParamInfo"] = 1;
  Driver driver(kFakeDriver);
  EXPECT_FALSE(driver.kernel_get_param_info.present());
  EXPECT_TRUE(driver.launch_kernel.present());
}

TEST_F(DriverTest, OpeningInitialisesNothing) {
  Driver driver(kFakeDriver);
  EXPECT_EQ(calls("cuInit"), 0);
  driver.initialize();
  driver.initialize();
  EXPECT_EQ(calls("cuInit"), 1);
}

TEST_F(DriverTest, FailedInitialisationCanBeRetried) {
  Driver driver(kFakeDriver);
  state_->failures["cuInit"] = 999;
  EXPECT_THROW(driver.initialize(), DriverError);
  state_->failures.clear();
  EXPECT_NO_THROW(driver.initialize());
}

TEST_F(DriverTest, CountIsZeroWithAReason) {
  std::string reason;
  EXPECT_EQ(cuda_device_count(&reason, {.library_path = "/no/libcuda.so"}), 0);
  EXPECT_THAT(reason, HasSubstr("/no/libcuda.so"));

  state_->failures["cuInit"] = kNoDevice;
  EXPECT_EQ(cuda_device_count(&reason, kFakeDriver), 0);
  EXPECT_THAT(reason, HasSubstr("no GPU"));

  state_->failures.clear();
  state_->device_count = 3;
  EXPECT_EQ(cuda_device_count(&reason, kFakeDriver), 3);
  EXPECT_EQ(reason, "");
}

TEST_F(DriverTest, ErrorCarriesCodeNameTextAndCall) {
  Driver driver(kFakeDriver);
  try {
    driver.check(kInvalidValue, "cuSomething");
    FAIL();
  } catch (const DriverError& error) {
    EXPECT_EQ(error.code(), kInvalidValue);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cuSomething"), HasSubstr("CUDA_ERROR_INVALID_VALUE"), HasSubstr("(1)"),
                                    HasSubstr("a scripted failure")));
  }
  EXPECT_FALSE(driver.poisoned());
}

TEST_F(DriverTest, OutOfMemoryIsItsOwnException) {
  Driver driver(kFakeDriver);
  EXPECT_THROW(driver.check(kOutOfMemory, "cuMemAlloc"), OutOfMemory);
}

TEST_F(DriverTest, ExactlyTheDocumentedCodesAreFatal) {
  for (const int code : {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810}) {
    EXPECT_TRUE(is_fatal(code)) << code;
  }
  for (const int code : {0, 1, 2, 3, 4, 201, 209, 400, 701, 711, 713, 720, 900, 901, 999}) {
    EXPECT_FALSE(is_fatal(code)) << code;
  }
}

TEST_F(DriverTest, FirstFatalErrorIsReportedFromThenOn) {
  Driver driver(kFakeDriver);
  driver.initialize();
  state_->failures["cuDeviceGetCount"] = 700;
  int count = 0;
  EXPECT_THROW(driver.device_get_count(&count), DriverError);
  EXPECT_TRUE(driver.poisoned());

  state_->failures.clear();
  const int calls_before = calls("cuDeviceGetCount");
  try {
    driver.device_get_count(&count);
    FAIL();
  } catch (const DriverError& error) {
    EXPECT_EQ(error.code(), 700);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cuDeviceGetCount"), HasSubstr("restart the process")));
  }
  EXPECT_EQ(calls("cuDeviceGetCount"), calls_before);

  EXPECT_THROW(driver.check(716, "cuLater"), DriverError);
  EXPECT_THAT(message_of<DriverError>([&] { driver.require_usable(); }), HasSubstr("cuDeviceGetCount"));
}

TEST_F(DriverTest, NoteNeverThrowsAndRemembersFatalCodes) {
  Driver driver(kFakeDriver);
  driver.note(kDeinitialized, "cuStreamDestroy");
  driver.note(400, "cuStreamDestroy");
  EXPECT_FALSE(driver.poisoned());
  driver.note(719, "cuStreamDestroy");
  EXPECT_TRUE(driver.poisoned());
}

/// Runs `child` in a forked process and returns its exit status.
template <class Child>
int in_fork(const Child& child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(child());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(DriverTest, ForkedChildGetsAnErrorAndTheParentIsNotAffected) {
  auto device = open_cuda_device(0, {}, kFakeDriver);
  const int status = in_fork([&] {
    try {
      device->allocate(16, nullptr);
      return 1;
    } catch (const DriverError& error) {
      return std::strstr(error.what(), "fork") != nullptr ? 0 : 2;
    }
  });
  EXPECT_EQ(status, 0);
  EXPECT_NO_THROW(device->deallocate(device->allocate(16, nullptr), nullptr));
}

TEST_F(DriverTest, ForkedChildReleasesNothingOfItsParent) {
  auto device = open_cuda_device(0, {}, kFakeDriver);
  const int status = in_fork([&] {
    const int before = calls("cuMemPoolDestroy") + calls("cuDevicePrimaryCtxRelease");
    device.reset();
    return calls("cuMemPoolDestroy") + calls("cuDevicePrimaryCtxRelease") - before;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(DriverTest, DriverOpenedBeforeAForkWorksInTheChild) {
  auto driver = std::make_shared<Driver>(kFakeDriver);
  EXPECT_EQ(in_fork([&] { return open_cuda_device(0, {}, driver)->properties().sm_count; }), 132);
}

}  // namespace
}  // namespace tilewright::runtime
