#include "tilewright/plan/overlap.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tilewright::plan {
namespace {

TEST(Overlap, AShortPhaseHidesBehindALongOne) {
  EXPECT_EQ(overlapped(5, 0, 3), 5);
  EXPECT_EQ(overlapped(0, 0, 3), 0);
  EXPECT_NEAR(overlapped(5, 0.5, 3), 5, 0.002);
}

TEST(Overlap, EqualPhasesHideLess) {
  EXPECT_DOUBLE_EQ(overlapped(5, 5, 3), 5 * std::cbrt(2));
  EXPECT_DOUBLE_EQ(overlapped(3, 4, 2), 5);
  EXPECT_DOUBLE_EQ(overlapped(4, 3, 2), 5);
  EXPECT_NEAR(overlapped(5, 5, 1000), 5, 0.004);
}

}  // namespace
}  // namespace tilewright::plan
