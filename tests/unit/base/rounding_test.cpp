#include "tilewright/base/rounding.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>

namespace tilewright {
namespace {

TEST(Rounding, DividesInTheDirectionOfItsName) {
  for (int y = 1; y <= 5; ++y) {
    for (int x = -12; x <= 12; ++x) {
      const int up = ceil_div(x, y), down = floor_div(x, y);
      EXPECT_TRUE(up * y >= x && (up - 1) * y < x) << x << " / " << y;
      EXPECT_TRUE(down * y <= x && (down + 1) * y > x) << x << " / " << y;
      EXPECT_EQ(round_up(x, y), up * y);
    }
  }
}

TEST(Rounding, TakesIntegersOfTwoTypes) {
  static_assert(std::is_same_v<decltype(ceil_div(7, std::int64_t{2})), std::int64_t>);
  EXPECT_EQ(ceil_div(7, std::int64_t{2}), 4);
  EXPECT_EQ(round_up(std::size_t{17}, 16), std::size_t{32});
  EXPECT_EQ(ceil_div(~std::uint64_t{0}, 1), ~std::uint64_t{0}) << "x + y - 1 would overflow";
}

}  // namespace
}  // namespace tilewright
