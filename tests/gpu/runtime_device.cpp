// Tests of CudaDevice on a GPU: copies, launches, threads, limits of the memory pool.
#include <gmock/gmock.h>

#include <array>
#include <numeric>
#include <thread>
#include <vector>

#include "gpu_test.hpp"
#include "tilewright/base/median.hpp"
#include "tilewright/runtime/call_timer.hpp"
#include "tilewright/runtime/event.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::runtime {
namespace {

using testing::HasSubstr;

struct AddParameters {
  DeviceAddress to;
  int value;
  int count;
};

constexpr const char* kAddSource = R"(
struct Parameters { int* to; int value; int count; };
extern "C" __global__ void add_value(Parameters p) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.count) p.to[i] += p.value;
}
)";

constexpr const char* kSmemSource = R"(
struct Parameters { int* to; int last; };
extern "C" __global__ void touch_smem(Parameters p) {
  extern __shared__ int smem[];
  smem[p.last] = 7;
  *p.to = smem[p.last];
}
)";

constexpr const char* kClusterSource = R"(
struct Parameters { int* to; };
extern "C" __global__ void cluster_size(Parameters p) {
  unsigned ctas;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(ctas));
  p.to[blockIdx.x] = static_cast<int>(ctas);
}
)";

class RuntimeDevice : public GpuTest {
 protected:
  std::vector<int> read(DeviceAddress from, std::size_t count, StreamHandle stream = nullptr) {
    std::vector<int> values(count);
    device_->copy_out(values.data(), from, count * sizeof(int), stream);
    device_->synchronize(stream);
    return values;
  }
};

TEST_F(RuntimeDevice, PropertiesArePlausible) {
  const DeviceProperties& properties = device_->properties();
  EXPECT_FALSE(properties.name.empty());
  EXPECT_GE(properties.target.sm, 80);
  EXPECT_GT(properties.sm_count, 0);
  EXPECT_GT(properties.l2_bytes, 0);
  EXPECT_GE(properties.smem_per_block_bytes, 99 << 10);
  EXPECT_GE(properties.smem_per_sm_bytes, properties.smem_per_block_bytes);
}

TEST_F(RuntimeDevice, LaunchesOnAStreamInOrder) {
  const auto kernel = load_kernel(*device_, "add_value", kAddSource);
  const Stream stream(device_->context());
  constexpr int kCount = 1000;
  const DeviceBuffer buffer(device_, kCount * sizeof(int), stream.handle());
  std::vector<int> values(kCount);
  std::iota(values.begin(), values.end(), 0);
  device_->copy_in(buffer.address(), values.data(), values.size() * sizeof(int), stream.handle());
  const LaunchConfig config{.grid = {(kCount + 127) / 128}, .block = {128}, .stream = stream.handle()};
  for (int i = 1; i <= 3; ++i) {
    const AddParameters parameters{buffer.address(), i, kCount};
    kernel->launch(config, parameter_bytes(parameters));
  }
  const std::vector<int> result = read(buffer.address(), kCount, stream.handle());
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(result[static_cast<std::size_t>(i)], i + 6);
}

TEST_F(RuntimeDevice, EventsMeasureTime) {
  const Stream stream(device_->context());
  const DeviceBuffer buffer(device_, std::size_t{256} << 20, stream.handle());
  const Event start(device_->context());
  const Event stop(device_->context());
  start.record(stream.handle());
  device_->fill(buffer.address(), 1, buffer.bytes(), stream.handle());
  stop.record(stream.handle());
  stop.synchronize();
  EXPECT_GT(stop.milliseconds_since(start), 0.01f);
  EXPECT_LT(stop.milliseconds_since(start), 1000.0f);
}

// The host needs longer to enqueue a call than the GPU needs to run it; one of three calls waits for the GPU.
TEST_F(RuntimeDevice, CallTimerMeasuresTheGpuAndNotTheHost) {
  const auto kernel = load_kernel(*device_, "add_value", kAddSource);
  const DeviceBuffer buffer(device_, sizeof(int));
  const AddParameters parameters{buffer.address(), 1, 1};
  CallTimer timer(device_->context());
  const auto launch_slowly = [&](std::size_t, StreamHandle stream) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    kernel->launch({.block = {32}, .stream = stream}, parameter_bytes(parameters));
  };
  std::vector<double> times_us = timer.time(200, launch_slowly);
  EXPECT_EQ(times_us.size(), 200u);
  EXPECT_LT(median(std::move(times_us)), 50.0);

  int synchronized = 0;
  times_us = timer.time(3, [&](std::size_t call, StreamHandle stream) {
    if (call == 1 && synchronized++ == 0) device_->synchronize(stream);
    launch_slowly(call, stream);
  });
  EXPECT_EQ(synchronized, 2) << "the calls were enqueued again";
  EXPECT_LT(median(std::move(times_us)), 50.0);
}

TEST_F(RuntimeDevice, SharedMemoryUpToTheOptInMaximum) {
  const auto bytes = static_cast<std::uint32_t>(device_->properties().smem_per_block_bytes);
  const auto kernel = load_kernel(*device_, "touch_smem", kSmemSource, bytes);
  const DeviceBuffer buffer(device_, sizeof(int));
  const struct {
    DeviceAddress to;
    int last;
  } parameters{buffer.address(), static_cast<int>(bytes / sizeof(int)) - 1};
  kernel->launch({.block = {1}, .dynamic_smem_bytes = bytes}, parameter_bytes(parameters));
  EXPECT_EQ(read(buffer.address(), 1)[0], 7);
  EXPECT_THROW(load_kernel(*device_, "touch_smem", kSmemSource, bytes + 1), InvalidArgument);
}

TEST_F(RuntimeDevice, ClustersAndProgrammaticLaunch) {
  if (!device_->context()->limits().clusters) GTEST_SKIP() << "no clusters on " << device_->properties().name;
  const auto kernel = load_kernel(*device_, "cluster_size", kClusterSource);
  const DeviceBuffer buffer(device_, 8 * sizeof(int));
  const DeviceAddress parameters = buffer.address();
  kernel->launch({.grid = {8}, .block = {32}, .cluster = {4}, .programmatic_stream_serialization = true},
                 parameter_bytes(parameters));
  EXPECT_THAT(read(buffer.address(), 8), testing::Each(4));
}

TEST_F(RuntimeDevice, ALaunchBeyondALimitIsRefusedAndTheContextStaysUsable) {
  const auto kernel = load_kernel(*device_, "add_value", kAddSource);
  const DeviceBuffer buffer(device_, sizeof(int));
  const AddParameters parameters{buffer.address(), 1, 1};
  device_->fill(buffer.address(), 0, sizeof(int), nullptr);
  const auto bytes = parameter_bytes(parameters);
  EXPECT_THROW(kernel->launch({.grid = {1, 65536, 1}, .block = {32}}, bytes), InvalidArgument);
  EXPECT_THROW(kernel->launch({.block = {2048}}, bytes), InvalidArgument);
  EXPECT_THROW(kernel->launch({.block = {32}}, bytes.first(8)), InvalidArgument);
  EXPECT_THROW(kernel->launch({.block = {32}, .dynamic_smem_bytes = 300000}, bytes), InvalidArgument);
  kernel->launch({.block = {32}}, bytes);
  EXPECT_EQ(read(buffer.address(), 1)[0], 1);
}

TEST_F(RuntimeDevice, ThreadsNeedNoContextOfTheirOwn) {
  const auto kernel = load_kernel(*device_, "add_value", kAddSource);
  std::array<int, 32> results{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      const Stream stream(device_->context());
      const DeviceBuffer buffer(device_, sizeof(int), stream.handle());
      device_->fill(buffer.address(), 0, sizeof(int), stream.handle());
      const AddParameters parameters{buffer.address(), static_cast<int>(t), 1};
      kernel->launch({.block = {32}, .stream = stream.handle()}, parameter_bytes(parameters));
      device_->context()->driver().ctx_set_current(nullptr);
      device_->copy_out(&results[t], buffer.address(), sizeof(int), stream.handle());
      device_->synchronize(stream.handle());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < results.size(); ++t) EXPECT_EQ(results[t], static_cast<int>(t));
}

TEST_F(RuntimeDevice, AnInvalidImageIsRefused) {
  std::vector<std::byte> image(4096);
  EXPECT_THROW(device_->load({.cubin = image, .ptx = {}}, "kernel", 0), InvalidArgument);
  EXPECT_NO_THROW(device_->synchronize(nullptr));
}

TEST_F(RuntimeDevice, OutOfMemoryIsReportedAndSurvived) {
  const std::string message = [&]() -> std::string {
    try {
      device_->allocate(std::size_t{32} << 40, nullptr);
    } catch (const OutOfMemory& error) {
      return error.what();
    }
    return "";
  }();
  EXPECT_THAT(message, HasSubstr(std::to_string(std::size_t{32} << 40)));
  const DeviceBuffer buffer(device_, 1 << 20);
  EXPECT_NE(buffer.address(), 0u);
}

TEST_F(RuntimeDevice, PoolKeepsItsInitialSizeAndObservesItsMaximum) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  const auto limited = open_cuda_device(0, {.initial_bytes = 64 * kMiB, .maximum_bytes = 128 * kMiB});
  EXPECT_GE(limited->pool().pool_bytes(), 64 * kMiB);
  EXPECT_EQ(limited->allocated_bytes(), 0u);
  {
    const DeviceBuffer most(limited, 128 * kMiB);
    EXPECT_THROW(DeviceBuffer(limited, 1), OutOfMemory);
    EXPECT_EQ(limited->allocated_bytes(), 128 * kMiB);
    EXPECT_EQ(most.address() % 256, 0u);
  }
  limited->synchronize(nullptr);
  EXPECT_GE(limited->pool().pool_bytes(), 128 * kMiB);
  const DeviceBuffer again(limited, 100 * kMiB);
  EXPECT_EQ(limited->allocated_bytes(), 100 * kMiB);
}

TEST_F(RuntimeDevice, ManyLoadsDoNotLeakMemory) {
  const auto kernel = load_kernel(*device_, "add_value", kAddSource);
  const auto free_bytes = [&] {
    const ContextScope scope(*device_->context());
    std::size_t free = 0;
    std::size_t total = 0;
    device_->context()->driver().mem_get_info(&free, &total);
    return free;
  };
  for (int i = 0; i < 3; ++i) load_kernel(*device_, "touch_smem", kSmemSource, 1024);
  const std::size_t before = free_bytes();
  for (int i = 0; i < 50; ++i) load_kernel(*device_, "touch_smem", kSmemSource, 1024);
  EXPECT_GE(free_bytes() + (std::size_t{8} << 20), before);
}

}  // namespace
}  // namespace tilewright::runtime
