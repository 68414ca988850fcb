#include "tilewright/emulator/unwritten_bytes.hpp"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace tilewright::emulator {
namespace {

using Range = UnwrittenBytes::Range;

TEST(UnwrittenBytes, AgreesWithASetOfBytes) {
  std::mt19937 random(1);
  UnwrittenBytes set;
  std::bitset<200> bytes;
  for (int step = 0; step < 4000; ++step) {
    std::uint64_t begin = random() % 200, end = random() % 201;
    if (begin > end) std::swap(begin, end);
    const bool adds = random() % 2 == 0;
    adds ? set.add(begin, end) : set.remove(begin, end);
    for (std::uint64_t i = begin; i < end; ++i) bytes[i] = adds;
    std::bitset<200> found;
    for (const auto& [from, to] : set.within(0, 200)) {
      for (std::uint64_t i = from; i < to; ++i) found.set(i);
    }
    ASSERT_EQ(found, bytes) << "step " << step;
    ASSERT_EQ(set.empty(), bytes.none());
  }
}

TEST(UnwrittenBytes, RangesAreClippedToWhatIsAsked) {
  UnwrittenBytes set;
  set.add(10, 20);
  set.add(30, 40);
  EXPECT_EQ(set.within(15, 32), (std::vector<Range>{{15, 20}, {30, 32}}));
  EXPECT_TRUE(set.within(20, 30).empty());
}

}  // namespace
}  // namespace tilewright::emulator
