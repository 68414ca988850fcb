#include "tilewright/base/lru_map.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tilewright {
namespace {

std::vector<int> keys(const LruMap<int, std::string>& map) {
  std::vector<int> found;
  map.for_each([&](int key, const std::string&) { found.push_back(key); });
  return found;
}

TEST(LruMapTest, EvictsTheLeastRecentlyUsed) {
  LruMap<int, std::string> map(2);
  EXPECT_TRUE(map.insert(1, "one").empty());
  EXPECT_TRUE(map.insert(2, "two").empty());
  ASSERT_NE(map.find(1), nullptr);
  EXPECT_EQ(map.insert(3, "three"), std::vector<std::string>{"two"});
  EXPECT_EQ(keys(map), (std::vector<int>{3, 1}));
  EXPECT_EQ(map.find(2), nullptr);
}

TEST(LruMapTest, EvictsUntilTheCostFits) {
  LruMap<int, std::string> map(100);
  EXPECT_TRUE(map.insert(1, "a", 40).empty());
  EXPECT_TRUE(map.insert(2, "b", 40).empty());
  EXPECT_EQ(map.insert(3, "c", 70), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(map.insert(4, "alone beyond the bound", 500), std::vector<std::string>{"c"});
  EXPECT_EQ(map.cost(), 500);
  EXPECT_EQ(map.insert(4, "replaced", 10), std::vector<std::string>{"alone beyond the bound"});
  EXPECT_EQ(map.cost(), 10);
}

TEST(LruMapTest, ErasesByCondition) {
  LruMap<int, std::string> map(10);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(map.insert(i, std::to_string(i)).empty());
  EXPECT_EQ(map.erase_if([](int key, const std::string&) { return key % 2 == 0; }).size(), 3u);
  EXPECT_EQ(keys(map), (std::vector<int>{5, 3, 1}));
  EXPECT_EQ(map.clear().size(), 3u);
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.cost(), 0);
}

TEST(LruMapTest, HoldsMoveOnlyValues) {
  LruMap<int, std::unique_ptr<int>> map(1);
  EXPECT_TRUE(map.insert(1, std::make_unique<int>(7)).empty());
  EXPECT_EQ(**map.find(1), 7);
  EXPECT_EQ(*map.insert(2, std::make_unique<int>(8)).front(), 7);
}

}  // namespace
}  // namespace tilewright
