// Memory pools: accounting, limits, capture, and a GPU without free memory.
#include "tilewright/runtime/memory_pool.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <set>

#include "fixture.hpp"

namespace tilewright::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MemoryPoolTest : public FakeDriverTest {
 protected:
  std::shared_ptr<CudaContext> context_ = std::make_shared<CudaContext>(std::make_shared<Driver>(kFakeDriver), 0);
};

TEST_F(MemoryPoolTest, CountsRequestedBytes) {
  MemoryPool pool(context_, {});
  const DeviceAddress a = pool.allocate(1000, nullptr);
  const DeviceAddress b = pool.allocate(24, nullptr);
  EXPECT_EQ(pool.allocated_bytes(), 1024u);
  pool.deallocate(a, nullptr);
  EXPECT_EQ(pool.allocated_bytes(), 24u);
  pool.deallocate(b, nullptr);
  EXPECT_EQ(pool.allocated_bytes(), 0u);
  EXPECT_EQ(pool.pool_bytes(), 4096u);
}

TEST_F(MemoryPoolTest, EmptyAllocationsAreDistinct) {
  MemoryPool pool(context_, {});
  std::set<DeviceAddress> addresses;
  for (int i = 0; i < 4; ++i) addresses.insert(pool.allocate(0, nullptr));
  EXPECT_EQ(addresses.size(), 4u);
  EXPECT_FALSE(addresses.contains(0));
  EXPECT_EQ(pool.allocated_bytes(), 0u);
  for (const DeviceAddress address : addresses) pool.deallocate(address, nullptr);
}

TEST_F(MemoryPoolTest, KeepsFreedMemory) {
  MemoryPool pool(context_, {});
  EXPECT_EQ(state_->release_threshold, std::numeric_limits<std::size_t>::max());
}

TEST_F(MemoryPoolTest, ReservesItsInitialSize) {
  MemoryPool pool(context_, {.initial_bytes = 1 << 20});
  EXPECT_EQ(calls("cuMemAllocFromPoolAsync"), 1);
  EXPECT_EQ(calls("cuMemFreeAsync"), 1);
  EXPECT_EQ(pool.allocated_bytes(), 0u);
}

TEST_F(MemoryPoolTest, MaximumIsExact) {
  MemoryPool pool(context_, {.maximum_bytes = 1000});
  const DeviceAddress first = pool.allocate(600, nullptr);
  const std::string message = message_of<OutOfMemory>([&] { pool.allocate(401, nullptr); });
  EXPECT_THAT(message, AllOf(HasSubstr("requested 401"), HasSubstr("allocated 600"), HasSubstr("maximum 1000")));
  const DeviceAddress second = pool.allocate(400, nullptr);
  EXPECT_THROW(pool.allocate(1, nullptr), OutOfMemory);
  pool.deallocate(first, nullptr);
  pool.deallocate(pool.allocate(600, nullptr), nullptr);
  pool.deallocate(second, nullptr);
}

TEST_F(MemoryPoolTest, HugeRequestDoesNotOverflow) {
  MemoryPool pool(context_, {.maximum_bytes = 1000});
  const DeviceAddress address = pool.allocate(10, nullptr);
  EXPECT_THROW(pool.allocate(std::numeric_limits<std::size_t>::max() - 5, nullptr), OutOfMemory);
  pool.deallocate(address, nullptr);
}

TEST_F(MemoryPoolTest, FullGpuIsTrimmedThenRefusedThenUsable) {
  MemoryPool pool(context_, {});
  state_->free_bytes = 100;
  const std::string message = message_of<OutOfMemory>([&] { pool.allocate(101, nullptr); });
  EXPECT_THAT(message, AllOf(HasSubstr("requested 101"), HasSubstr("100 free")));
  EXPECT_EQ(calls("cuMemPoolTrimTo"), 1);
  pool.deallocate(pool.allocate(100, nullptr), nullptr);
}

TEST_F(MemoryPoolTest, InitialSizeMustFit) {
  EXPECT_THROW(MemoryPool(context_, {.initial_bytes = 2, .maximum_bytes = 1}), InvalidArgument);
  state_->free_bytes = 100;
  EXPECT_THROW(MemoryPool(context_, {.initial_bytes = 101}), OutOfMemory);
}

TEST_F(MemoryPoolTest, GpuWithoutPoolsIsRefused) {
  state_->memory_pools_supported = 0;
  EXPECT_THAT(message_of<InvalidArgument>([&] { MemoryPool pool(context_, {}); }), HasSubstr("Fake GPU"));
}

TEST_F(MemoryPoolTest, AllocationDuringCaptureIsNotPassedToTheDriver) {
  MemoryPool pool(context_, {});
  state_->capture_status = 1;
  EXPECT_THAT(message_of<InvalidArgument>([&] { pool.allocate(16, nullptr); }), HasSubstr("capture"));
  EXPECT_EQ(calls("cuMemAllocFromPoolAsync"), 0);
}

TEST_F(MemoryPoolTest, FreeDuringCaptureKeepsTheMemoryUntilThePoolIsDestroyed) {
  {
    MemoryPool pool(context_, {});
    const DeviceAddress address = pool.allocate(16, nullptr);
    state_->capture_status = 1;
    pool.deallocate(address, nullptr);
    EXPECT_EQ(calls("cuMemFreeAsync"), 0);
    EXPECT_EQ(pool.allocated_bytes(), 16u);
    state_->capture_status = 0;
  }
  EXPECT_EQ(calls("cuMemFreeAsync"), 1);
}

TEST_F(MemoryPoolTest, UnknownAddressIsNotFreed) {
  MemoryPool pool(context_, {});
  const DeviceAddress address = pool.allocate(16, nullptr);
  pool.deallocate(address + 8, nullptr);
  pool.deallocate(0, nullptr);
  EXPECT_EQ(calls("cuMemFreeAsync"), 0);
  pool.deallocate(address, nullptr);
  pool.deallocate(address, nullptr);
  EXPECT_EQ(calls("cuMemFreeAsync"), 1);
}

}  // namespace
}  // namespace tilewright::runtime
