#include "tilewright/emulator/footprint.hpp"

#include <gtest/gtest.h>

namespace tilewright::emulator {
namespace {

ByteRanges ranges(std::initializer_list<ByteRanges::Range> all) {
  ByteRanges made;
  for (const auto& [begin, end] : all) made.add(begin, end);
  made.normalise();
  return made;
}

TEST(ByteRanges, AddingASetJoinsWhatTouches) {
  ByteRanges all = ranges({{10, 20}, {40, 50}});
  all.add(ranges({{20, 30}, {45, 60}}));
  all.normalise();
  EXPECT_EQ(all.ranges(), (std::vector<ByteRanges::Range>{{10, 30}, {40, 60}}));
}

TEST(ByteRanges, ContainsOnlyWhatIsInOneRange) {
  const ByteRanges all = ranges({{10, 20}, {30, 40}});
  EXPECT_TRUE(all.contains(ranges({})));
  EXPECT_TRUE(all.contains(ranges({{10, 20}})));
  EXPECT_TRUE(all.contains(ranges({{12, 13}, {15, 20}, {30, 31}})));
  EXPECT_FALSE(all.contains(ranges({{9, 11}})));
  EXPECT_FALSE(all.contains(ranges({{15, 35}})));
  EXPECT_FALSE(all.contains(ranges({{12, 13}, {39, 41}})));
  EXPECT_FALSE(all.contains(ranges({{50, 51}})));
  EXPECT_FALSE(ranges({}).contains(all));
}

TEST(ByteRanges, FindsTheFirstCommonPart) {
  const ByteRanges all = ranges({{10, 20}, {30, 40}});
  EXPECT_EQ(all.first_common(ranges({{0, 10}, {35, 50}})), (ByteRanges::Range{35, 40}));
  EXPECT_FALSE(all.first_common(ranges({{20, 30}})));
}

}  // namespace
}  // namespace tilewright::emulator
