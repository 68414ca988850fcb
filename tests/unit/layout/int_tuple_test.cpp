// Trees of integers: structure, arithmetic, coordinates.
#include "tilewright/layout/int_tuple.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "layout_generators.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::layout {
namespace {

TEST(IntTuple, BracesMakeTuplesAndIntegersAreLeaves) {
  EXPECT_EQ(to_string(IntTuple(8)), "8");
  EXPECT_EQ(to_string(IntTuple{8}), "(8)");
  EXPECT_EQ(to_string(IntTuple{{2, 2}, 8}), "((2,2),8)");
  EXPECT_EQ(to_string(IntTuple::tuple(std::vector<IntTuple>{})), "()");
  EXPECT_NE(IntTuple(8), (IntTuple{8}));
  EXPECT_EQ((IntTuple{{2, 2}, -8}), (IntTuple{IntTuple{2, 2}, IntTuple(-8)}));
}

TEST(IntTuple, RankDepthAndLeaves) {
  const IntTuple t{{2, {3, 5}}, 7};
  EXPECT_EQ(t.rank(), 2);
  EXPECT_EQ(depth(t), 3);
  EXPECT_EQ(depth(IntTuple(1)), 0);
  EXPECT_EQ(leaves(t), (std::vector<std::int64_t>{2, 3, 5, 7}));
  EXPECT_EQ(flatten(t), (IntTuple{2, 3, 5, 7}));
  EXPECT_EQ(flatten(IntTuple(4)), IntTuple(4));
  EXPECT_EQ(IntTuple(4).rank(), 1);
  EXPECT_EQ(IntTuple(4)[0], IntTuple(4));
}

TEST(IntTuple, RefusesWhatIsNotThere) {
  const IntTuple pair{2, 3};
  EXPECT_THROW((void)pair.value(), InvalidArgument);
  EXPECT_THROW((void)pair[2], InvalidArgument);
  EXPECT_THROW((void)pair[-1], InvalidArgument);
}

TEST(IntTuple, Products) {
  EXPECT_EQ(product(IntTuple(2)), 2);
  EXPECT_EQ(product(IntTuple{3, 2}), 6);
  EXPECT_EQ(product(IntTuple{{{2, 3}, 4}, 5}), 120);
  EXPECT_EQ(product(IntTuple::tuple(std::vector<IntTuple>{})), 1);
  EXPECT_EQ(inner_product(2, 3), 6);
  EXPECT_EQ(inner_product(IntTuple{1, 2}, IntTuple{3, 2}), 7);
  EXPECT_EQ(inner_product(IntTuple{{2, 3}, 4}, IntTuple{{2, 1}, 2}), 15);
  EXPECT_THROW(inner_product(IntTuple{1, 2}, IntTuple{1, 2, 3}), InvalidArgument);
  EXPECT_THROW((void)product(IntTuple{std::numeric_limits<std::int64_t>::max(), 2}), InvalidArgument);
}

TEST(IntTuple, PrefixProductKeepsTheProfile) {
  EXPECT_EQ(prefix_product(2), IntTuple(1));
  EXPECT_EQ(prefix_product(IntTuple{3, 2}), (IntTuple{1, 3}));
  EXPECT_EQ(prefix_product(IntTuple{3, 2, 4}), (IntTuple{1, 3, 6}));
  EXPECT_EQ(prefix_product(IntTuple{{2, 3}, 4}), (IntTuple{{1, 2}, 6}));
  EXPECT_EQ(prefix_product(IntTuple{{2, 3}, {2, 1, 2}, {5, 2, 1}}), (IntTuple{{1, 2}, {6, 12, 12}, {24, 120, 240}}));
}

TEST(IntTuple, ShapeDiv) {
  EXPECT_EQ(shape_div(IntTuple{3, 4}, 6), (IntTuple{1, 2}));
  EXPECT_EQ(shape_div(IntTuple{3, 4}, 12), (IntTuple{1, 1}));
  EXPECT_EQ(shape_div(IntTuple{3, 4}, 36), (IntTuple{1, 1}));
  EXPECT_EQ(shape_div(IntTuple{{3, 4}, 6}, 36), (IntTuple{{1, 1}, 2}));
  EXPECT_EQ(shape_div(IntTuple{6, {3, 4}}, 36), (IntTuple{1, {1, 2}}));
  EXPECT_EQ(shape_div(12, IntTuple{2, 3}), IntTuple(2));
  EXPECT_EQ(shape_div(IntTuple{8, 6}, IntTuple{4, 3}), (IntTuple{2, 2}));
  EXPECT_THROW(shape_div(8, 6), InvalidArgument);
}

TEST(IntTuple, Congruence) {
  const IntTuple nested{{2, 2}, 8};
  EXPECT_TRUE(congruent(nested, IntTuple{{1, 5}, 0}));
  EXPECT_FALSE(congruent(nested, IntTuple{4, 8}));
  EXPECT_FALSE(congruent(IntTuple{4}, IntTuple(4)));
  EXPECT_TRUE(weakly_congruent(IntTuple{4, 8}, nested));
  EXPECT_TRUE(weakly_congruent(5, nested));
  EXPECT_FALSE(weakly_congruent(nested, IntTuple{4, 8}));
  EXPECT_TRUE(compatible(32, nested));
  EXPECT_TRUE(compatible(IntTuple{4, 8}, nested));
  EXPECT_FALSE(compatible(IntTuple{8, 4}, nested));
  EXPECT_FALSE(compatible(nested, 32));
}

TEST(IntTuple, CoordinatesToIndices) {
  const IntTuple shape{3, {2, 3}};
  EXPECT_EQ(crd2idx(16, shape), 16);
  EXPECT_EQ(crd2idx(IntTuple{1, 5}, shape), 16);
  EXPECT_EQ(crd2idx(IntTuple{1, {1, 2}}, shape), 16);
  EXPECT_EQ(idx2crd(16, shape), (IntTuple{1, {1, 2}}));
  EXPECT_EQ(crd2idx(IntTuple{1, 5}, shape, IntTuple{100, {10, 1}}), 112);
  EXPECT_THROW(crd2idx(IntTuple{1, 2, 3}, shape), InvalidArgument);
  EXPECT_THROW(crd2idx(IntTuple{{1, 0}, 2}, shape), InvalidArgument);
  EXPECT_THROW(crd2idx(1, shape, IntTuple{1, 2}), InvalidArgument);
}

RC_GTEST_PROP(IntTuple, CoordinatesAndIndicesAreInverse, ()) {
  const IntTuple shape = *any_shape();
  const auto index = *rc::gen::inRange<std::int64_t>(0, 3 * product(shape));
  const IntTuple coord = idx2crd(index, shape);
  RC_ASSERT(congruent(coord, shape));
  RC_ASSERT(crd2idx(coord, shape) == index);
}

}  // namespace
}  // namespace tilewright::layout
