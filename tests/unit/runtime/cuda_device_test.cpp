// CudaDevice on the fake driver: properties, loading, launching, threads, and injected faults.
#include "tilewright/runtime/cuda_device.hpp"

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <future>
#include <thread>

#include "fixture.hpp"
#include "tilewright/runtime/call_timer.hpp"
#include "tilewright/runtime/event.hpp"
#include "tilewright/runtime/module.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::runtime {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CudaDeviceTest : public FakeDriverTest {
 protected:
  std::shared_ptr<LoadedKernel> load(std::uint32_t dynamic_smem_bytes = 0, const std::string& symbol = "kernel") {
    return device_->load({.cubin = cubin_, .ptx = {}}, symbol, dynamic_smem_bytes);
  }

  std::vector<std::byte> cubin_ = minimal_cubin();
  std::shared_ptr<CudaDevice> device_ = open_cuda_device(0, {}, kFakeDriver);
};

TEST_F(CudaDeviceTest, PropertiesAreThoseOfTheDriver) {
  const DeviceProperties& properties = device_->properties();
  EXPECT_EQ(properties.name, "Fake GPU");
  EXPECT_EQ(properties.target.name(), "sm_90a");
  EXPECT_FALSE(properties.emulated);
  EXPECT_EQ(properties.sm_count, 132);
  EXPECT_EQ(properties.clock_khz, 1980000);
  EXPECT_EQ(properties.memory_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(properties.smem_per_block_bytes, 232448);
  EXPECT_EQ(properties.registers_per_sm, 65536);
}

TEST_F(CudaDeviceTest, RefusesAnOrdinalWithoutAGpu) {
  EXPECT_THAT(message_of<InvalidArgument>([] { open_cuda_device(1, {}, kFakeDriver); }), HasSubstr("cuda:1"));
  EXPECT_THROW(open_cuda_device(-1, {}, kFakeDriver), InvalidArgument);
}

TEST_F(CudaDeviceTest, CopiesAndFills) {
  const DeviceBuffer buffer(device_, 4);
  const std::array<std::uint8_t, 4> in{1, 2, 3, 4};
  std::array<std::uint8_t, 4> out{};
  device_->copy_in(buffer.address(), in.data(), in.size(), nullptr);
  device_->fill(buffer.address() + 1, 9, 2, nullptr);
  device_->copy_out(out.data(), buffer.address(), out.size(), nullptr);
  device_->synchronize(nullptr);
  EXPECT_THAT(out, ElementsAre(1, 9, 9, 4));
}

TEST_F(CudaDeviceTest, EmptyCopiesDoNotCallTheDriver) {
  device_->copy_in(0, nullptr, 0, nullptr);
  device_->copy_out(nullptr, 0, 0, nullptr);
  device_->fill(0, 1, 0, nullptr);
  EXPECT_EQ(calls("cuMemcpyHtoDAsync") + calls("cuMemcpyDtoHAsync") + calls("cuMemsetD8Async"), 0);
}

TEST_F(CudaDeviceTest, BuffersAreMovable) {
  DeviceBuffer first(device_, 100);
  const DeviceAddress address = first.address();
  DeviceBuffer second(std::move(first));
  EXPECT_EQ(first.address(), 0u);  // NOLINT(bugprone-use-after-move): tests the moved-from state
  EXPECT_EQ(second.address(), address);
  first = DeviceBuffer(device_, 7);
  EXPECT_EQ(device_->allocated_bytes(), 107u);
  first = std::move(second);
  EXPECT_EQ(device_->allocated_bytes(), 100u);
  EXPECT_EQ(first.bytes(), 100u);
}

TEST_F(CudaDeviceTest, LaunchPassesItsConfiguration) {
  state_->parameter_sizes = {12};
  const auto kernel = load(1024);
  std::array<std::byte, 12> parameters{};
  parameters[11] = std::byte{42};
  kernel->launch({.grid = {8, 4, 2},
                  .block = {128, 2, 1},
                  .cluster = {2, 2, 1},
                  .dynamic_smem_bytes = 1000,
                  .programmatic_stream_serialization = true,
                  .cooperative = true},
                 parameters);
  ASSERT_EQ(state_->launches.size(), 1u);
  const fake_driver::Launch& launch = state_->launches[0];
  EXPECT_THAT(launch.grid, ElementsAre(8, 4, 2));
  EXPECT_THAT(launch.block, ElementsAre(128, 2, 1));
  EXPECT_EQ(launch.dynamic_smem_bytes, 1000u);
  EXPECT_THAT(launch.attributes.at(4), ElementsAre(2, 2, 1));
  EXPECT_EQ(launch.attributes.at(6).at(0), 1u);
  EXPECT_EQ(launch.attributes.at(2).at(0), 1u);
  ASSERT_EQ(launch.parameters.size(), 12u);
  EXPECT_EQ(launch.parameters[11], std::byte{42});
}

TEST_F(CudaDeviceTest, LoadingQueriesNoMissingParameter) {
  state_->parameter_sizes = {8};
  load();
  EXPECT_EQ(calls("cuKernelGetParamInfo"), 1);
}

TEST_F(CudaDeviceTest, SeveralParametersAreComparedWithTheKernel) {
  state_->parameter_sizes = {8, 8, 4};
  const std::string ptx =
      ".entry kernel2(.param .u64 a)\n{}\n.entry kernel(\n.param .u64 .ptr .align 1 kernel_param_0,\n"
      ".param .u64 kernel_param_1,\n.param .u32 kernel_param_2\n)\n{ ld.param.u64 %rd1, [kernel_param_0]; }\n";
  const auto kernel = device_->load({.cubin = cubin_, .ptx = ptx}, "kernel", 0);
  const std::array<std::byte, 24> bytes{};
  const auto launch = [&](std::vector<std::uint16_t> offsets, std::vector<std::uint16_t> sizes) {
    kernel->launch({.block = {32}, .parameter_offsets = offsets, .parameter_sizes = sizes}, bytes);
  };
  launch({0, 8, 20}, {8, 8, 4});  // the offsets need not be those of the kernel
  EXPECT_EQ(calls("cuLaunchKernelEx"), 1);
  EXPECT_THAT(message_of<InvalidArgument>([&] { launch({0, 8}, {8, 8}); }), HasSubstr("takes 3 parameters, got 2"));
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                launch({0, 8, 16, 20}, {8, 8, 4, 4});
              }),
              HasSubstr("takes 3 parameters, got 4"));
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                launch({0, 4, 8}, {4, 8, 4});
              }),
              HasSubstr("parameter 0 of kernel has 8 bytes, got 4"));
  EXPECT_EQ(calls("cuLaunchKernelEx"), 1);
  EXPECT_EQ(calls("cuKernelGetParamInfo"), 1 + 3) << "no missing parameter was queried";
}

TEST_F(CudaDeviceTest, WithoutPtxTheNumberOfParametersIsNotChecked) {
  state_->parameter_sizes = {8, 4};
  const std::array<std::byte, 16> bytes{};
  const std::vector<std::uint16_t> offsets{0, 8, 12}, sizes{8, 4, 4};
  const auto kernel = load();
  const auto launch = [&](std::size_t count) {
    const LaunchConfig config{.block = {32},
                              .parameter_offsets = std::span(offsets).first(count),
                              .parameter_sizes = std::span(sizes).first(count)};
    kernel->launch(config, bytes);
  };
  launch(1);  // the number is not known
  launch(2);
  EXPECT_EQ(calls("cuLaunchKernelEx"), 2);
  EXPECT_THAT(message_of<InvalidArgument>([&] { launch(3); }), HasSubstr("takes 2 parameters, got 3"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { launch(1); }), HasSubstr("takes 2 parameters, got 1"));
}

TEST_F(CudaDeviceTest, AllocateZerosSynchronisesItsOwnStream) {
  state_->capture_status = 0;
  const DeviceBuffer zeros = DeviceBuffer::of_zeros(device_, 4096);
  EXPECT_EQ(zeros.bytes(), 4096u);
  EXPECT_EQ(calls("cuMemsetD8Async"), 1);
  EXPECT_EQ(calls("cuStreamSynchronize"), 1);
  EXPECT_EQ(state_->live["stream"], 0);
  EXPECT_EQ(state_->capture_mode, 0) << "restored";
}

TEST_F(CudaDeviceTest, ACaptureHasItsOwnOrder) {
  const StreamOrder eager = device_->order_of(nullptr);
  EXPECT_EQ(eager.capture, 0u);
  state_->capture_id = 7;
  EXPECT_EQ(device_->order_of(nullptr), eager) << "the stream is not being captured";
  state_->capture_status = 1;
  const StreamOrder captured = device_->order_of(reinterpret_cast<StreamHandle>(64));
  EXPECT_EQ(captured.capture, 7u);
  EXPECT_EQ(device_->order_of(reinterpret_cast<StreamHandle>(64)), captured);
  EXPECT_NE(device_->order_of(reinterpret_cast<StreamHandle>(128)), captured) << "branches of one capture may overlap";
  state_->capture_id = 8;
  EXPECT_NE(device_->order_of(reinterpret_cast<StreamHandle>(64)), captured);
}

TEST_F(CudaDeviceTest, PlainLaunchHasNoAttributes) {
  load()->launch({.grid = {1}, .block = {32}}, {});
  EXPECT_TRUE(state_->launches.at(0).attributes.empty());
}

TEST_F(CudaDeviceTest, LaunchBeyondALimitIsNotPassedToTheDriver) {
  state_->parameter_sizes = {8};
  const auto kernel = load(1024);
  const std::array<std::byte, 8> parameters{};
  EXPECT_THROW(kernel->launch({.grid = {1, 65536, 1}, .block = {32}}, parameters), InvalidArgument);
  EXPECT_THROW(kernel->launch({.block = {513}}, parameters), InvalidArgument);
  EXPECT_THROW(kernel->launch({.block = {32}, .dynamic_smem_bytes = 232449}, parameters), InvalidArgument);
  EXPECT_THROW(kernel->launch({.block = {32}}, std::span(parameters).first(4)), InvalidArgument);
  EXPECT_EQ(calls("cuLaunchKernelEx"), 0);
}

TEST_F(CudaDeviceTest, SharedMemoryIsCheckedAndOptedInToOnce) {
  state_->static_smem_bytes = 448;
  const auto kernel = load(232000);
  EXPECT_EQ(calls("cuKernelSetAttribute"), 1);
  kernel->launch({.block = {32}, .dynamic_smem_bytes = 232000}, {});
  load(0)->launch({.block = {32}, .dynamic_smem_bytes = 232000}, {});  // a later launch may use more
  EXPECT_EQ(calls("cuKernelSetAttribute"), 2);
  EXPECT_THAT(message_of<InvalidArgument>([&] { load(232001); }),
              AllOf(HasSubstr("448 + 232001"), HasSubstr("232448")));
}

TEST_F(CudaDeviceTest, RefusesEmptyImagesAndInvalidSymbols) {
  EXPECT_THROW(device_->load({.cubin = {}, .ptx = {}}, "kernel", 0), InvalidArgument);
  for (const std::string symbol : {"", "a b", "x\nevil", "1x"}) EXPECT_THROW(load(0, symbol), InvalidArgument);
  EXPECT_EQ(calls("cuLibraryGetKernel"), 0);
  EXPECT_THROW(load(0, "missing"), DriverError);
}

TEST_F(CudaDeviceTest, PtxAloneIsCompiledByTheDriver) {
  EXPECT_NE(device_->load({.cubin = {}, .ptx = ".version 8.0"}, "kernel", 0), nullptr);
  EXPECT_EQ(calls("cuLibraryLoadData"), 1);
}

TEST_F(CudaDeviceTest, DamagedCubinIsNotPassedToTheDriver) {
  for (std::size_t size = 0; size < cubin_.size(); ++size) {
    EXPECT_THROW(device_->load({.cubin = std::span(cubin_).first(size), .ptx = {}}, "kernel", 0), InvalidArgument)
        << size;
  }
  EXPECT_EQ(calls("cuLibraryLoadData"), 0);
}

TEST(CheckCubin, NamesTheDamage) {
  const auto refusal = [](std::size_t offset, int value) {
    std::vector<std::byte> image = minimal_cubin();
    image[offset] = static_cast<std::byte>(value);
    return check_cubin(image).reason();
  };
  EXPECT_TRUE(check_cubin(minimal_cubin()));
  EXPECT_THAT(refusal(1, 'X'), HasSubstr("ELF"));
  EXPECT_THAT(refusal(4, 1), HasSubstr("64-bit"));
  EXPECT_THAT(refusal(18, 62), HasSubstr("got 62"));
  EXPECT_THAT(refusal(60, 0), HasSubstr("0 sections"));
  EXPECT_THAT(refusal(60, 3), HasSubstr("truncated"));
  EXPECT_THAT(refusal(47, 0xff), HasSubstr("truncated"));       // e_shoff near 2^63
  EXPECT_THAT(refusal(64 + 24, 0xff), HasSubstr("section 0"));  // sh_offset; its type is not NOBITS
}

TEST_F(CudaDeviceTest, KernelAndBufferOutliveTheirDevice) {
  auto kernel = load();
  DeviceBuffer buffer(device_, 16);
  device_.reset();
  kernel->launch({.block = {32}}, {});
  EXPECT_EQ(buffer.bytes(), 16u);
}

TEST_F(CudaDeviceTest, UnloadDoesNotAffectCaptures) {
  constexpr int kRelaxed = 2;
  load();
  EXPECT_EQ(state_->capture_mode_at_unload, kRelaxed);
  EXPECT_EQ(state_->capture_mode, 0);
}

TEST_F(CudaDeviceTest, ThreadWithoutAContextKeepsItAndAnotherContextIsRestored) {
  const Driver& driver = device_->context()->driver();
  std::thread([&] {
    device_->synchronize(nullptr);
    ContextHandle current = nullptr;
    driver.ctx_get_current(&current);
    EXPECT_EQ(current, device_->context()->handle());

    char other = 0;
    const auto another = reinterpret_cast<ContextHandle>(&other);
    driver.ctx_set_current(another);
    device_->synchronize(nullptr);
    driver.ctx_get_current(&current);
    EXPECT_EQ(current, another);
  }).join();
}

TEST_F(CudaDeviceTest, ManyThreadsAllocateAndFree) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < 100; ++i) DeviceBuffer(device_, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device_->allocated_bytes(), 0u);
}

TEST_F(CudaDeviceTest, EveryCallAfterAFatalErrorReportsIt) {
  auto kernel = load();
  state_->failures["cuStreamSynchronize"] = 700;
  EXPECT_THROW(device_->synchronize(nullptr), DriverError);
  state_->failures.clear();
  for (const auto& again : std::vector<std::function<void()>>{
           [&] { device_->synchronize(nullptr); }, [&] { device_->allocate(16, nullptr); },
           [&] { kernel->launch({.block = {32}}, {}); }, [&] { load(); }}) {
    EXPECT_THAT(message_of<DriverError>(again), AllOf(HasSubstr("cuStreamSynchronize"), HasSubstr("700")));
  }
  EXPECT_EQ(calls("cuLaunchKernelEx"), 0);
  kernel.reset();
  device_.reset();
  state_->live.clear();  // resources of an unusable context are not released
}

/// All operations of a user of the runtime, from construction to destruction of each object.
void live_a_life(const std::vector<std::byte>& cubin) {
  auto device = open_cuda_device(0, {.initial_bytes = 64, .maximum_bytes = 4096}, kFakeDriver);
  Stream stream(device->context());
  const Event start(device->context());
  const Event stop(device->context());
  CallTimer timer(device->context());
  const DeviceBuffer buffer(device, 64, stream.handle());
  std::array<std::byte, 64> host{};
  device->copy_in(buffer.address(), host.data(), host.size(), stream.handle());
  const auto kernel = device->load({.cubin = cubin, .ptx = {}}, "kernel", 128);
  start.record(stream.handle());
  kernel->launch({.block = {32}, .stream = stream.handle()}, {});
  stop.record(stream.handle());
  stream.wait(stop);
  stop.synchronize();
  EXPECT_TRUE(stop.is_complete());
  EXPECT_FLOAT_EQ(stop.milliseconds_since(start), fake_driver::kRecordMs);
  timer.time(1, [](std::size_t, StreamHandle) {});
  device->fill(buffer.address(), 0, 64, stream.handle());
  device->copy_out(host.data(), buffer.address(), host.size(), stream.handle());
  stream.synchronize();
  device->pool().trim();
  EXPECT_GT(device->pool().pool_bytes(), 0u);
}

/// Runs in a new thread, which has no current context.
void use_everything(const std::vector<std::byte>& cubin) {
  std::async(std::launch::async, live_a_life, std::cref(cubin)).get();
}

class FaultMatrix : public FakeDriverTest {
 protected:
  /// Calls whose failure must not throw: they release resources in destructors.
  static bool releases(const std::string& symbol) {
    return symbol.find("Destroy") != std::string::npos || symbol.find("Release") != std::string::npos ||
           symbol.find("Unload") != std::string::npos;
  }
};

TEST_F(FaultMatrix, EveryFailureOfEveryCallThrowsOnceAndLeaksNothing) {
  const std::vector<std::byte> cubin = minimal_cubin();
  use_everything(cubin);
  ASSERT_EQ(live(), "");
  std::vector<std::string> symbols;
  for (const auto& [symbol, count] : state_->calls) {
    if (symbol != "cuGetProcAddress" && symbol.find("GetError") == std::string::npos) symbols.push_back(symbol);
  }
  ASSERT_GT(symbols.size(), 30u);

  for (const std::string& symbol : symbols) {
    for (const int code : {1, 2, 3, 4, 46, 201, 209, 400, 700, 719, 900, 999}) {
      SCOPED_TRACE(symbol + " -> " + std::to_string(code));
      *state_ = {};
      state_->failures[symbol] = code;
      bool thrown = false;
      try {
        use_everything(cubin);
      } catch (const OutOfMemory&) {
        thrown = true;
        EXPECT_EQ(code, 2);
      } catch (const DriverError& error) {
        thrown = true;
        EXPECT_EQ(error.code(), code);
        EXPECT_THAT(error.what(), HasSubstr(symbol == "cuInit" ? "cuInit" : symbol));
      }
      const bool is_free = symbol == "cuMemFreeAsync";  // throws when it frees the initial reservation
      const bool is_silent = releases(symbol) || symbol == "cuKernelGetParamInfo" ||
                             (symbol == "cuThreadExchangeStreamCaptureMode" && !is_fatal(code));
      EXPECT_EQ(thrown, is_free || !is_silent);
      EXPECT_EQ(state_->bad_releases, 0);
      const bool still_releasable =
          !is_fatal(code) && !releases(symbol) && symbol.find("Ctx") == std::string::npos && !is_free;
      if (still_releasable) {
        EXPECT_EQ(live(), "");
      }
    }
  }
  *state_ = {};
}

}  // namespace
}  // namespace tilewright::runtime
