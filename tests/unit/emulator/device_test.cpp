// The emulated device as a runtime::Device: memory, properties, loading and launching.
#include "tilewright/emulator/device.hpp"

#include <gtest/gtest.h>

#include "lane_kernel.hpp"

namespace tilewright::emulator {
namespace {

const std::string kEmpty = fmt::format("{}.visible .entry k(.param .u64 out) {{ ret; }}\n", kHeader);

TEST(Device, HasItsTargetsProperties) {
  const auto device = make_emulated_device(kSm90a);
  EXPECT_EQ(device->properties().name, "emulator:sm_90a");
  EXPECT_TRUE(device->properties().emulated);
  EXPECT_EQ(device->properties().smem_per_block_bytes, 227 * 1024);
  EXPECT_EQ(make_emulated_device(kSm80)->properties().smem_per_block_bytes, 163 * 1024);
  EXPECT_THROW(make_emulated_device(Target{70}), InvalidArgument);
  EXPECT_THROW(make_emulated_device(device_target(120)), InvalidArgument);
}

TEST(Device, AllocationsAreAlignedDistinctAndCounted) {
  const auto device = test_device();
  const auto a = device->allocate(1, nullptr);
  const auto b = device->allocate(0, nullptr);
  const auto c = device->allocate(0, nullptr);
  EXPECT_EQ(a % 256, 0U);
  EXPECT_NE(b, c);
  EXPECT_EQ(device->allocated_bytes(), 1U);
  device->deallocate(a, nullptr);
  EXPECT_EQ(device->allocated_bytes(), 0U);
  device->deallocate(a, nullptr);
  device->deallocate(b, nullptr);
  device->deallocate(c, nullptr);
}

TEST(Device, DeallocationsOfUnknownAddressesAreLogged) {
  const auto device = test_device();
  const auto address = device->allocate(64, nullptr);
  const auto logged = [&](runtime::DeviceAddress freed) {
    testing::internal::CaptureStdout();
    device->deallocate(freed, nullptr);
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(logged(address), "");
  EXPECT_EQ(logged(0), "");
  EXPECT_NE(logged(address).find(fmt::format("deallocate of 0x{:x}, which is not an allocation", address)),
            std::string::npos);
}

TEST(Device, RefusesMoreMemoryThanItHas) {
  EmulatorOptions options;
  options.memory_bytes = 1024;
  const auto device = test_device(options);
  const auto kept = device->allocate(1000, nullptr);
  EXPECT_THROW(device->allocate(25, nullptr), OutOfMemory);
  device->deallocate(kept, nullptr);
  device->deallocate(device->allocate(1024, nullptr), nullptr);
}

TEST(Device, CopiesStayInsideAllocations) {
  const auto device = test_device();
  const runtime::DeviceBuffer buffer(device, 16);
  std::uint8_t bytes[17] = {};
  device->fill(buffer.address(), 7, 16, nullptr);
  device->copy_out(bytes, buffer.address() + 8, 8, nullptr);
  EXPECT_EQ(bytes[7], 7);
  EXPECT_THROW(device->copy_in(buffer.address(), bytes, 17, nullptr), EmulationError);
  EXPECT_THROW(device->copy_out(bytes, buffer.address() + 16, 1, nullptr), EmulationError);
  EXPECT_THROW(device->fill(buffer.address() - 1, 0, 1, nullptr), EmulationError);
  device->copy_in(0, bytes, 0, nullptr);
}

TEST(Device, NewMemoryIsNan) {
  const auto device = test_device();
  const runtime::DeviceBuffer buffer(device, 4);
  EXPECT_TRUE(std::isnan(download<float>(*device, buffer)[0]));
}

TEST(Device, RefusesToLoadUnknownKernels) {
  const auto device = test_device();
  EXPECT_THROW(device->load({{}, kEmpty}, "other", 0), EmulationError);
  EXPECT_THROW(device->load({{}, ""}, "k", 0), EmulationError);
  EXPECT_THROW(device->load({{}, kEmpty}, "k", 228 * 1024), InvalidArgument);
}

TEST(Device, ModuleVariablesTakeMemoryButAreNotCountedAsAllocated) {
  EmulatorOptions options;
  options.memory_bytes = 1024;
  const auto device = test_device(options);
  {
    const auto kernel = device->load({{}, kEmpty + ".global .b8 table[1000];\n"}, "k", 0);
    EXPECT_EQ(device->allocated_bytes(), 0U);
    EXPECT_THROW(device->allocate(25, nullptr), OutOfMemory);
    const runtime::DeviceBuffer beside(device, 24);
    EXPECT_EQ(device->allocated_bytes(), 24U);
  }
  const runtime::DeviceBuffer whole(device, 1024);
  EXPECT_EQ(device->allocated_bytes(), 1024U) << "the module's variables were freed with the kernel";
}

TEST(Device, RefusesImpossibleLaunches) {
  const auto device = test_device();
  const auto kernel = device->load({{}, kEmpty}, "k", 0);
  const auto parameters = pack_addresses({0});
  runtime::LaunchConfig config;
  config.block = {32, 1, 1};
  kernel->launch(config, parameters);
  EXPECT_THROW(kernel->launch(config, {}), InvalidArgument);
  config.block = {1025, 1, 1};
  EXPECT_THROW(kernel->launch(config, parameters), InvalidArgument);
  config.block = {0, 1, 1};
  EXPECT_THROW(kernel->launch(config, parameters), InvalidArgument);
  config.block = {32, 1, 1};
  config.cluster = {2, 1, 1};
  EXPECT_THROW(kernel->launch(config, parameters), InvalidArgument);  // a grid of one CTA
  config.grid = {34, 1, 1};
  kernel->launch(config, parameters);
  config.cluster = {17, 1, 1};
  EXPECT_THROW(kernel->launch(config, parameters), InvalidArgument);
  config.cluster = {};
  config.grid = {};
  config.dynamic_smem_bytes = 300000;
  EXPECT_THROW(kernel->launch(config, parameters), InvalidArgument);
  config.dynamic_smem_bytes = 0;
  config.grid = {0, 1, 1};
  EXPECT_THROW(kernel->launch(config, parameters), InvalidArgument);
}

TEST(Device, ChecksReqntid) {
  const auto device = test_device();
  const auto kernel = device->load(
      {{}, fmt::format("{}.visible .entry k(.param .u64 out) .reqntid 64, 1, 1 {{ ret; }}\n", kHeader)}, "k", 0);
  runtime::LaunchConfig config;
  config.block = {32, 1, 1};
  EXPECT_THROW(kernel->launch(config, pack_addresses({0})), InvalidArgument);
  config.block = {64, 1, 1};
  kernel->launch(config, pack_addresses({0}));
}

TEST(Device, RemainsUsableAfterAFinding) {
  const auto device = test_device();
  const runtime::DeviceBuffer out(device, 128);
  const std::string faulty = lane_kernel("add.u64 %at, %at, 1;\nld.global.u32 %d, [%at];", {"b32", 4}, {});
  EXPECT_THROW(launch(*device, faulty, "k", {out.address()}, {32, 1, 1}), EmulationFinding);
  launch(*device, lane_kernel("mov.u32 %d, 3;", {"b32", 4}, {}), "k", {out.address()}, {32, 1, 1});
  EXPECT_EQ(download<std::uint32_t>(*device, out)[31], 3U);
}

TEST(Device, BlocksNeedNotBeMultiplesOfAWarp) {
  const auto device = test_device();
  const auto out = upload(device, std::vector<std::uint32_t>(40, 9));
  launch(*device, lane_kernel("bar.sync 0;\nmov.u32 %d, 3;", {"b32", 4}, {}), "k", {out.address()}, {37, 1, 1});
  const auto values = download<std::uint32_t>(*device, out);
  EXPECT_EQ(values[36], 3U);
  EXPECT_EQ(values[37], 9U);
}

}  // namespace
}  // namespace tilewright::emulator
