// The engine's workspaces: one buffer per stream or capture, zeroed at first, freed with the engine.
#include "tilewright/engine/workspaces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tilewright/emulator/device.hpp"

namespace tilewright::engine {
namespace {

class WorkspacesTest : public testing::Test {
 protected:
  std::vector<std::byte> read(runtime::DeviceAddress address, std::size_t bytes) const {
    std::vector<std::byte> values(bytes, std::byte{1});
    device_->copy_out(values.data(), address, bytes, nullptr);
    return values;
  }

  /// The address of a workspace that a call used and returned.
  runtime::DeviceAddress use(std::size_t bytes) {
    Workspaces::Lease lease = workspaces_.lease(bytes, nullptr);
    lease.launched();
    return lease.address();
  }

  std::shared_ptr<runtime::Device> device_ = emulator::make_emulated_device(kSm90a);
  Workspaces workspaces_{device_};
};

TEST_F(WorkspacesTest, AreZeroedOnceAndReused) {
  const runtime::DeviceAddress first = use(3000);
  const std::vector<std::byte> zeros = read(first, 3000);
  EXPECT_TRUE(std::ranges::all_of(zeros, [](std::byte b) { return b == std::byte{0}; }));
  device_->fill(first, 7, 4, nullptr);
  EXPECT_EQ(use(100), first);
  EXPECT_EQ(read(first, 1).front(), std::byte{7}) << "the contents of the last launch";
}

TEST_F(WorkspacesTest, GrowAndKeepOutgrownBuffers) {
  const runtime::DeviceAddress small = use(1000);
  const runtime::DeviceAddress large = use(5000);
  EXPECT_NE(small, large);
  EXPECT_EQ(read(large, 5000), std::vector<std::byte>(5000));
  EXPECT_EQ(read(small, 1000), std::vector<std::byte>(1000)) << "still allocated";
  EXPECT_EQ(use(8000), large) << "grown to a power of two";
}

TEST_F(WorkspacesTest, AreNeverSharedByCallsAtOnce) {
  Workspaces::Lease first = workspaces_.lease(1000, nullptr);
  Workspaces::Lease second = workspaces_.lease(1000, nullptr);
  EXPECT_NE(first.address(), second.address());
  const runtime::DeviceAddress returned = first.address();
  { const Workspaces::Lease ended = std::move(first); }
  EXPECT_EQ(use(1000), returned);
}

TEST_F(WorkspacesTest, AreZeroedAfterACallThatFailed) {
  const runtime::DeviceAddress address = use(1000);
  device_->fill(address, 7, 1000, nullptr);
  {
    const Workspaces::Lease fails = workspaces_.lease(1000, nullptr);
    EXPECT_EQ(read(fails.address(), 1).front(), std::byte{7});
  }
  EXPECT_EQ(use(1000), address);
  EXPECT_EQ(read(address, 1000), std::vector<std::byte>(1000));
}

TEST_F(WorkspacesTest, AreFreedAtTheEnd) {
  {
    Workspaces passing(device_);
    passing.lease(1 << 20, nullptr);
    EXPECT_GE(device_->allocated_bytes(), std::size_t{1} << 20);
  }
  EXPECT_EQ(device_->allocated_bytes(), 0U);
}

}  // namespace
}  // namespace tilewright::engine
