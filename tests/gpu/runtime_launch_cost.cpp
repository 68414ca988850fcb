// The overhead of a launch through the runtime compared with a direct driver call.
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "gpu_test.hpp"
#include "tilewright/base/median.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::runtime {
namespace {

constexpr const char* kEmptySource = R"(
struct Parameters { unsigned long long words[16]; };
extern "C" __global__ void do_nothing(Parameters) {}
)";

using RuntimeLaunchCost = GpuTest;

/// The median over batches of the time per call in microseconds. The stream is synchronized between batches, so that
/// its queue never fills up.
double median_us(const std::function<void()>& call, const std::function<void()>& drain) {
  constexpr int kBatches = 51;
  constexpr int kCalls = 200;
  std::vector<double> batches;
  for (int i = 0; i < kBatches; ++i) {
    drain();
    const auto start = std::chrono::steady_clock::now();
    for (int c = 0; c < kCalls; ++c) call();
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
    batches.push_back(elapsed.count() / kCalls);
  }
  return median(std::move(batches));
}

TEST_F(RuntimeLaunchCost, IsWithinTwoMicrosecondsOfTheDriver) {
  const auto loaded = load_kernel(*device_, "do_nothing", kEmptySource);
  const auto* kernel = dynamic_cast<const CudaKernel*>(loaded.get());
  ASSERT_NE(kernel, nullptr);
  const Stream stream(device_->context());
  const ContextScope scope(*device_->context());
  const Driver& driver = device_->context()->driver();
  const std::array<std::uint64_t, 16> parameters{};

  void* const pointer = const_cast<std::uint64_t*>(parameters.data());
  std::array<void*, 1> arguments = {pointer};
  const LaunchRecord record{.grid = {1},
                            .block = {32},
                            .dynamic_smem_bytes = 0,
                            .stream = stream.handle(),
                            .attributes = nullptr,
                            .attribute_count = 0};
  const LaunchConfig config{.grid = {1}, .block = {32}, .stream = stream.handle()};
  const auto drain = [&] { stream.synchronize(); };
  const auto bare = [&] { driver.launch_kernel.raw(&record, kernel->function(), arguments.data(), nullptr); };
  const auto ours = [&] { loaded->launch(config, parameter_bytes(parameters)); };

  median_us(bare, drain);
  const double bare_us = median_us(bare, drain);
  const double ours_us = median_us(ours, drain);
  RecordProperty("bare_us", std::to_string(bare_us));
  RecordProperty("runtime_us", std::to_string(ours_us));
  std::printf("bare cuLaunchKernelEx %.3f us, through the runtime %.3f us\n", bare_us, ours_us);
  EXPECT_LE(ours_us, bare_us + 2.0);
}

}  // namespace
}  // namespace tilewright::runtime
