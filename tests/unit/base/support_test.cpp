// The fields of a Refusal, and the values that carry one.
#include "tilewright/base/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Refusals, CarryTheNumbersOfTheirReason) {
  const Refusal refusal =
      refuse("{} of {} is {} and {}, at {}", 'A', 3, std::int64_t{1} << 40, "text", 1.5).as(RefusalCode::shape).of('A');
  EXPECT_EQ(refusal.reason, "A of 3 is 1099511627776 and text, at 1.5");
  EXPECT_THAT(refusal.numbers, testing::ElementsAre(3, std::int64_t{1} << 40));
  EXPECT_EQ(refusal.operand, "A");
  EXPECT_EQ(name(refusal.code), "shape");
}

TEST(Refusals, ArePassedOnBySupportAndResult) {
  const Support support = refuse("k must be {}", 8).as(RefusalCode::alignment).of("B");
  ASSERT_FALSE(support);
  EXPECT_EQ(support.refusal(), refuse("k must be {}", 8).as(RefusalCode::alignment).of("B"));
  const Result<int> result = support.refusal();
  EXPECT_EQ(result.refusal().operand, "B");
  EXPECT_TRUE(Support());
  EXPECT_EQ(Support().reason(), "");
  EXPECT_THROW(static_cast<void>(Support().refusal()), InternalError);
}

TEST(Refusals, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(RefusalCode::artifact); ++code)
    EXPECT_FALSE(name(static_cast<RefusalCode>(code)).empty());
}

}  // namespace
}  // namespace tilewright
