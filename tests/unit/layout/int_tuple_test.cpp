// IntTuple: structure, arithmetic, coordinates.
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

TEST(IntTuple, RefusesModesAndValuesThatDoNotExist) {
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

TEST(IntTuple, IndicesNeedPositiveExtents) {
  EXPECT_THROW(idx2crd(5, IntTuple{0, 3}), InvalidArgument);
  EXPECT_THROW(idx2crd(5, IntTuple{8, 0}), InvalidArgument);
  EXPECT_THROW(idx2crd(5, IntTuple{{2, -1}, -3}), InvalidArgument);
  EXPECT_THROW(idx2crd(5, 0, 1), InvalidArgument);
  EXPECT_THROW(crd2idx(5, IntTuple{0, 3}, IntTuple{1, 2}), InvalidArgument);
  EXPECT_THROW(crd2crd(9, 32, IntTuple{0, 8}), InvalidArgument);
  EXPECT_THROW(idx2crd(std::numeric_limits<std::int64_t>::min(), 3, -1), InvalidArgument) << "2^63 does not fit";
  EXPECT_EQ(idx2crd(-7, 3, -1), IntTuple(1));
}

TEST(IntTuple, ChangesModes) {
  const IntTuple t{{2, 3}, 8, 5};
  EXPECT_EQ(get(t, {0, 1}), IntTuple(3));
  EXPECT_EQ(get(t, {}), t);
  EXPECT_EQ(take(t, 1, 3), (IntTuple{8, 5}));
  EXPECT_EQ(select(t, {2, 0}), (IntTuple{5, {2, 3}}));
  EXPECT_EQ(append(IntTuple(2), 3), (IntTuple{2, 3}));
  EXPECT_EQ(prepend(t, 1), (IntTuple{1, {2, 3}, 8, 5}));
  EXPECT_EQ(append(IntTuple{2, 3}, 4, 1), (IntTuple{2, 3, 1, 1}));
  EXPECT_EQ(prepend(IntTuple(2), 2, 1), (IntTuple{1, 2}));
  EXPECT_EQ(append(IntTuple(2), 1, 1), IntTuple(2));
  EXPECT_EQ(replace(t, 0, 6), (IntTuple{6, 8, 5}));
  EXPECT_EQ(group(t, 0, 2), (IntTuple{{{2, 3}, 8}, 5}));
  EXPECT_EQ(reverse(t), (IntTuple{5, 8, {2, 3}}));
  EXPECT_EQ(unflatten(IntTuple{7, 8, 9, 10}, t), (IntTuple{{7, 8}, 9, 10}));
  EXPECT_EQ(unflatten(flatten(t), t), t);
  EXPECT_THROW(get(t, {1, 1}), InvalidArgument);
  EXPECT_THROW(take(t, 2, 2), InvalidArgument);
  EXPECT_THROW(append(t, 2, 1), InvalidArgument);
  EXPECT_THROW(replace(t, 3, 1), InvalidArgument);
  EXPECT_THROW(unflatten(IntTuple{7, 8}, t), InvalidArgument);
}

TEST(IntTuple, ProductsByModeAndQuotients) {
  EXPECT_EQ(product_each(IntTuple{{2, 3}, 8}), (IntTuple{6, 8}));
  EXPECT_EQ(suffix_product(IntTuple{{2, 3}, 4}), (IntTuple{{12, 4}, 1}));
  EXPECT_EQ(tuple_max(IntTuple{{2, 9}, 4}), 9);
  EXPECT_EQ(elem_scale(IntTuple{2, {3, 4}}, IntTuple{{5, 2}, {7, 1}}), (IntTuple{20, {21, 4}}));
  EXPECT_EQ(ceil_div(IntTuple{10, 7}, IntTuple{4}), (IntTuple{3, 7}));
  EXPECT_EQ(ceil_div(IntTuple{4, 10}, 8), (IntTuple{1, 5}));
  EXPECT_EQ(ceil_div(IntTuple(10), IntTuple{2, 2}), IntTuple(3));
  EXPECT_EQ(compact_order(IntTuple{4, {2, 5}, 8}, IntTuple{1, 0, 2}), (IntTuple{10, {1, 2}, 40}));
  EXPECT_EQ(compact_order(IntTuple{4, 8}, IntTuple{3, 3}), (IntTuple{1, 4}))
      << "equal orders: the first mode is faster";
  EXPECT_TRUE(evenly_divides(IntTuple{{4, 8}, 6}, IntTuple{16, 3}));
  EXPECT_FALSE(evenly_divides(IntTuple{12, 6}, IntTuple{8}));
}

TEST(IntTuple, Orders) {
  const IntTuple shape{3, {2, 5}};
  for (std::int64_t i = 0; i < product(shape); ++i) {
    EXPECT_TRUE(elem_less(idx2crd(i, shape), shape));
    for (std::int64_t j = 0; j < product(shape); ++j)
      EXPECT_EQ(i < j, colex_less(idx2crd(i, shape), idx2crd(j, shape))) << i << " " << j;
  }
  EXPECT_TRUE(lex_less(IntTuple{1, 9}, IntTuple{2, 0}));
  EXPECT_FALSE(elem_less(IntTuple{1, 9}, IntTuple{2, 0}));
  EXPECT_TRUE(elem_geq(IntTuple{1, 9}, IntTuple{2, 0}));
  EXPECT_TRUE(elem_gtr(IntTuple{2, 2}, IntTuple{1, 1}));
  EXPECT_TRUE(elem_leq(IntTuple{1, 1}, IntTuple{1, 1}));
  EXPECT_THROW(elem_less(IntTuple{1, 2}, 3), InvalidArgument);
}

TEST(IntTuple, ScaledBasesAreCoordinates) {
  const IntTuple e = IntTuple::scaled_basis(5, {0, 1});
  EXPECT_EQ(to_string(e), "5@1@0") << "innermost first, as CuTe prints E<0,1>";
  EXPECT_EQ(as_arithmetic_tuple(e), (IntTuple{{0, 5}}));
  EXPECT_EQ(e + IntTuple::scaled_basis(3, {2}), (IntTuple{{0, 5}, 0, 3}));
  EXPECT_EQ(IntTuple(0) + e, (IntTuple{{0, 5}}));
  EXPECT_EQ(to_string(-2 * e), "-10@1@0");
  EXPECT_EQ(to_string(make_basis_like({4, {2, 3}})), "(1@0,(1@0@1,1@1@1))");
  EXPECT_EQ(IntTuple::scaled_basis(7, {}), IntTuple(7));
  EXPECT_NE(e, IntTuple(5));
  EXPECT_THROW(IntTuple(1) + e, InvalidArgument);
  EXPECT_THROW((void)e.value(), InvalidArgument);
  EXPECT_THROW((Basis{0, 0, 0, 0, 0, 0, 0, 0}), InvalidArgument);
}

TEST(IntTuple, SlicesByUnderscores) {
  const IntTuple t{4, {2, 3}};
  EXPECT_EQ(to_string(IntTuple{_, {1, _}}), "(_,(1,_))");
  EXPECT_EQ(slice({_, {1, _}}, t), (IntTuple{4, 3}));
  EXPECT_EQ(dice({_, {1, _}}, t), (IntTuple{2}));
  EXPECT_EQ(slice({1, _}, t), (IntTuple{{2, 3}}));
  EXPECT_EQ(slice(_, t), t);
  EXPECT_EQ(dice(1, t), t);
  EXPECT_EQ(to_string(slice({1, 2}, t)), "()");
  EXPECT_THROW(slice({_, _, _}, t), InvalidArgument);
  EXPECT_THROW((void)crd2idx({_, 1}, t), InvalidArgument) << "_ has no index";
}

TEST(IntTuple, CoordinatesBetweenShapes) {
  EXPECT_EQ(crd2crd(IntTuple{1, 5}, IntTuple{3, 6}, IntTuple{{3, 1}, {2, 3}}), (IntTuple{{1, 0}, {1, 2}}));
  EXPECT_EQ(crd2crd(IntTuple{1, 5}, IntTuple{3, 6}, IntTuple(18)), IntTuple(16));
  EXPECT_EQ(crd2crd(16, IntTuple(18), IntTuple{3, {2, 3}}), (IntTuple{1, {1, 2}}));
  EXPECT_EQ(idx2crd(17, IntTuple{2, 16, 1}, IntTuple{16, 1, 0}), (IntTuple{1, 1, 0}));
  EXPECT_EQ(idx2crd(IntTuple{1, 5}, IntTuple{3, {2, 3}}), (IntTuple{1, {1, 2}}));
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
