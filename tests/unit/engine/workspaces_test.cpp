// The engine's workspaces: one buffer per stream or capture, zeroed at first, freed with the engine.
#include "tilewright/engine/workspaces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

  std::shared_ptr<runtime::Device> device_ = emulator::make_emulated_device(kSm90a);
  Workspaces workspaces_{device_};
};

TEST_F(WorkspacesTest, AreZeroedOnceAndReused) {
  const runtime::DeviceAddress first = workspaces_.at_least(3000, nullptr);
  const std::vector<std::byte> zeros = read(first, 3000);
  EXPECT_TRUE(std::ranges::all_of(zeros, [](std::byte b) { return b == std::byte{0}; }));
  device_->fill(first, 7, 4, nullptr);
  EXPECT_EQ(workspaces_.at_least(100, nullptr), first);
  EXPECT_EQ(read(first, 1).front(), std::byte{7}) << "the contents of the last launch";
}

TEST_F(WorkspacesTest, GrowAndKeepOutgrownBuffers) {
  const runtime::DeviceAddress small = workspaces_.at_least(1000, nullptr);
  const runtime::DeviceAddress large = workspaces_.at_least(5000, nullptr);
  EXPECT_NE(small, large);
  EXPECT_EQ(read(large, 5000), std::vector<std::byte>(5000));
  EXPECT_EQ(read(small, 1000), std::vector<std::byte>(1000)) << "still allocated";
  EXPECT_EQ(workspaces_.at_least(8000, nullptr), large) << "grown to a power of two";
}

TEST_F(WorkspacesTest, AreFreedAtTheEnd) {
  {
    Workspaces passing(device_);
    passing.at_least(1 << 20, nullptr);
    EXPECT_GE(device_->allocated_bytes(), std::size_t{1} << 20);
  }
  EXPECT_EQ(device_->allocated_bytes(), 0U);
}

}  // namespace
}  // namespace tilewright::engine
