// Work that is done ahead: order, waiting, errors and an early end.
#include "bench/work_ahead.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace tilewright::bench {
namespace {

using Works = std::vector<WorkAhead::Work>;

TEST(WorkAhead, WaitsForAllPartsOfAnItem) {
  constexpr std::size_t kItems = 40, kParts = 5;
  std::vector<std::atomic<int>> done(kItems);
  WorkAhead ahead(kItems, 4, [&](std::size_t item) {
    Works works;
    for (std::size_t i = 0; i < kParts; ++i) {
      works.push_back([&done, item] {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        ++done[item];
      });
    }
    return works;
  });
  for (std::size_t item = 0; item < kItems; ++item) {
    ahead.wait_for(item);
    EXPECT_EQ(done[item], kParts);
  }
}

TEST(WorkAhead, ItemsAreAddedInOrderAndOneAtATime) {
  std::vector<std::size_t> order;
  std::atomic<int> inside = 0;
  {
    WorkAhead ahead(20, 4, [&](std::size_t item) {
      EXPECT_EQ(++inside, 1);
      order.push_back(item);
      --inside;
      return Works{[] {}};
    });
    ahead.wait_for(19);
  }
  ASSERT_EQ(order.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(order[i], i);
}

TEST(WorkAhead, AnErrorEndsOnlyItsPart) {
  std::atomic<int> done = 0;
  WorkAhead ahead(3, 2, [&](std::size_t item) -> Works {
    if (item == 1) throw std::runtime_error("no kernels");
    return {[] { throw std::runtime_error("does not compile"); }, [&] { ++done; }};
  });
  for (std::size_t item = 0; item < 3; ++item) ahead.wait_for(item);
  EXPECT_EQ(done, 2);
}

TEST(WorkAhead, PartsThatHaveNotBegunAreDroppedAtTheEnd) {
  std::atomic<int> begun = 0;
  {
    WorkAhead ahead(1, 1, [&](std::size_t) {
      Works works;
      for (int i = 0; i < 1000; ++i) {
        works.push_back([&] {
          ++begun;
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        });
      }
      return works;
    });
    while (begun == 0) std::this_thread::yield();
  }
  EXPECT_LT(begun, 100);
}

}  // namespace
}  // namespace tilewright::bench
