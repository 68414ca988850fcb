// The median of odd and even counts of values.
#include "tilewright/base/median.hpp"

#include <gtest/gtest.h>

#include "tilewright/base/error.hpp"

namespace tilewright {
namespace {

TEST(Median, IsTheMiddleValueOfAnOddCount) {
  EXPECT_EQ(median({7.0}), 7.0);
  EXPECT_EQ(median({10.0, 1000.0, 11.0, 9.0, 10.5}), 10.5);
}

TEST(Median, IsTheMeanOfTheMiddleTwoOfAnEvenCount) { EXPECT_EQ(median({8.0, 1.0, 4.0, 2.0}), 3.0); }

TEST(Median, NoValuesHaveNone) { EXPECT_THROW(median({}), InternalError); }

}  // namespace
}  // namespace tilewright
