// Division by multiplication, and the divisors of a raster order.
#include "tilewright/plan/tile_grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <utility>

#include "tilewright/base/error.hpp"

namespace tilewright::plan {
namespace {

constexpr std::int64_t kEnd = std::int64_t{1} << 31;

void expect_exact(std::int64_t divisor, std::int64_t dividend) {
  if (dividend < 0 || dividend >= kEnd) return;
  ASSERT_EQ(Divisor(divisor).quotient(dividend), dividend / divisor) << dividend << " by " << divisor;
}

/// The quotient changes at multiples of the divisor, so that the dividends beside them decide.
void expect_exact_at_multiples(std::int64_t divisor, std::int64_t multiple) {
  for (const std::int64_t beside : {-1, 0, 1}) expect_exact(divisor, divisor * multiple + beside);
}

TEST(Divisor, IsExactForSmallNumbers) {
  for (std::int64_t divisor = 1; divisor <= 300; ++divisor) {
    for (std::int64_t dividend = 0; dividend <= 1000; ++dividend) expect_exact(divisor, dividend);
  }
}

TEST(Divisor, IsExactBesideMultiplesOfEveryPowerOfTwoAndItsNeighbours) {
  for (int bit = 0; bit < 31; ++bit) {
    for (const std::int64_t beside : {-1, 0, 1}) {
      const std::int64_t divisor = (std::int64_t{1} << bit) + beside;
      if (divisor < 1) continue;
      for (const std::int64_t multiple : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, (kEnd - 1) / divisor})
        expect_exact_at_multiples(divisor, multiple);
      expect_exact(divisor, kEnd - 1);
    }
  }
}

TEST(Divisor, IsExactForRandomNumbers) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const std::int64_t divisor = 1 + static_cast<std::int64_t>(random() >> (33 + random() % 31)) % (kEnd - 1);
    const auto multiple = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>((kEnd - 1) / divisor + 1));
    expect_exact_at_multiples(divisor, multiple);
    expect_exact(divisor, static_cast<std::int64_t>(random() >> 33));
  }
}

TEST(Divisor, RefusesNumbersOutOfRange) {
  EXPECT_THROW(Divisor(0), InternalError);
  EXPECT_THROW(Divisor(-1), InternalError);
  EXPECT_THROW(Divisor{kEnd}, InternalError);
}

TEST(TileGrid, SpanOfTheFirstTilesIsThatOfTheOrder) {
  for (const int width : {1, 2, 4, 8}) {
    for (const bool along_n : {false, true}) {
      for (const auto& [tiles_m, tiles_n] : {std::pair{20, 30}, {3, 40}, {40, 3}, {8, 8}, {7, 1}, {1, 1}, {30, 7}}) {
        const Raster raster{width, along_n};
        const std::int64_t across = along_n ? tiles_m : tiles_n, along = along_n ? tiles_n : tiles_m;
        const std::int64_t group = std::min(group_width(raster, tiles_m, tiles_n), across);
        std::set<std::int64_t> places, lines;
        for (std::int64_t i = 0; i < std::min(8, tiles_m * tiles_n); ++i) {
          places.insert(i / (group * along) * group + i % (group * along) % group);
          lines.insert(i % (group * along) / group);
        }
        const TileSpan span = span_of_first(raster, tiles_m, tiles_n, 8);
        EXPECT_EQ(along_n ? span.rows : span.columns, std::ssize(places)) << width << " " << tiles_m << " " << tiles_n;
        EXPECT_EQ(along_n ? span.columns : span.rows, std::ssize(lines)) << width << " " << tiles_m << " " << tiles_n;
      }
    }
  }
  EXPECT_EQ(span_of_first({8, false}, 0, 5, 8).rows, 0);
}

TEST(TileGrid, HasTheDivisorsOfItsGroups) {
  const TileGrid grid = tile_grid({.width = 8, .along_n = false}, 100, 19);
  EXPECT_EQ(grid.tiles_m, 100);
  EXPECT_EQ(grid.tiles_n, 19);
  EXPECT_EQ(grid.matrix.quotient(1899), 0);
  EXPECT_EQ(grid.matrix.quotient(1900), 1);
  EXPECT_EQ(grid.group.quotient(799), 0);
  EXPECT_EQ(grid.group.quotient(800), 1);
  EXPECT_EQ(grid.narrow.quotient(2), 0);
  EXPECT_EQ(grid.narrow.quotient(3), 1);
}

TEST(TileGrid, OfFewTilesAcrossHasGroupsOfFour) {
  EXPECT_EQ(tile_grid({.width = 8, .along_n = false}, 100, 5).group.quotient(400), 1);
  EXPECT_EQ(tile_grid({.width = 8, .along_n = true}, 5, 100).group.quotient(400), 1);
}

TEST(TileGrid, MayBeEmpty) { EXPECT_EQ(tile_grid({.width = 8, .along_n = false}, 0, 7).tiles_m, 0); }

}  // namespace
}  // namespace tilewright::plan
