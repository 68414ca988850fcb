// Layouts as functions: construction, evaluation, sizes, printing.
#include "tilewright/layout/layout.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <limits>

#include <algorithm>
#include <limits>
#include <sstream>

#include "layout_generators.hpp"
#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

TEST(Layout, Prints) {
  const Layout layout({8, 64}, {64, 1});
  EXPECT_EQ(to_string(layout), "(8,64):(64,1)");
  EXPECT_EQ(fmt::format("{}", layout), "(8,64):(64,1)");
  EXPECT_EQ(fmt::format("{:>14}", layout), " (8,64):(64,1)");
  std::ostringstream out;
  out << layout;
  EXPECT_EQ(out.str(), "(8,64):(64,1)");
  EXPECT_EQ(to_string(Layout()), "1:0");
}

TEST(Layout, CompactConstructions) {
  EXPECT_EQ(to_string(make_layout(8)), "8:1");
  EXPECT_EQ(to_string(make_layout({4, {2, 3}})), "(4,(2,3)):(1,(4,8))");
  EXPECT_EQ(to_string(make_row_major({4, 8})), "(4,8):(8,1)");
  EXPECT_EQ(to_string(make_row_major({4, {2, 3}})), "(4,(2,3)):(6,(3,1))");
  EXPECT_EQ(to_string(make_ordered_layout({4, 8}, {1, 0})), "(4,8):(8,1)");
  EXPECT_EQ(to_string(make_ordered_layout({3, {2, 5}, 7}, {2, 0, 1})), "(3,(2,5),7):(70,(1,2),10)");
  EXPECT_EQ(to_string(concatenate({Layout(2, 1), Layout({3, 4}, {4, 1})})), "(2,(3,4)):(1,(4,1))");
}

TEST(Layout, RefusesViolatedInvariants) {
  EXPECT_THROW(Layout({4, 8}, {1, 4, 8}), InvalidArgument);
  EXPECT_THROW(Layout({4, 8}, 1), InvalidArgument);
  EXPECT_THROW(make_layout({4, 0}), InvalidArgument);
  EXPECT_THROW(make_layout({4, -2}), InvalidArgument);
  EXPECT_THROW(make_layout({std::numeric_limits<std::int64_t>::max(), 4}), InvalidArgument);
  EXPECT_THROW(make_ordered_layout({4, 8}, {0}), InvalidArgument);
  EXPECT_THROW(make_ordered_layout({4, 8}, {0, {1, 2}}), InvalidArgument);
}

TEST(Layout, MapsIndicesAndCoordinates) {
  const Layout layout({4, {2, 3}}, {2, {1, 8}});
  EXPECT_EQ(layout(0), 0);
  EXPECT_EQ(layout(7), 3 * 2 + 1);
  EXPECT_EQ(layout(3, 1), 7);
  EXPECT_EQ(layout(3, 5), 3 * 2 + 1 + 2 * 8);
  EXPECT_EQ(layout(IntTuple{3, {1, 2}}), 23);
  EXPECT_EQ(layout(24), 3 * 8) << "the last mode extends past the end";
  EXPECT_THROW(layout(1, 2, 3), InvalidArgument);
}

TEST(Layout, ModesAndSizes) {
  const Layout layout({4, {2, 3}}, {2, {1, 8}});
  EXPECT_EQ(layout.mode(1), Layout({2, 3}, {1, 8}));
  EXPECT_THROW((void)layout.mode(2), InvalidArgument);
  EXPECT_EQ(size(layout), 24);
  EXPECT_EQ(depth(layout), 2);
  EXPECT_EQ(flatten(layout), Layout({4, 2, 3}, {2, 1, 8}));
  EXPECT_EQ(cosize(layout), 3 * 2 + 1 + 2 * 8 + 1);
  EXPECT_EQ(cosize(Layout(4, -1)), 4);
  EXPECT_EQ(cosize(Layout({4, 3}, {-1, 4})), 12);
  EXPECT_EQ(cosize(Layout(5, 0)), 1);
}

TEST(Layout, ChangesModes) {
  const Layout layout({{2, 3}, 8}, {{1, 2}, 6});
  EXPECT_EQ(to_string(get(layout, {0, 1})), "3:2");
  EXPECT_EQ(to_string(append(layout, 3)), "((2,3),8,1):((1,2),6,0)");
  EXPECT_EQ(to_string(prepend(layout, Layout(4, 48))), "(4,(2,3),8):(48,(1,2),6)");
  EXPECT_EQ(to_string(replace(layout, 0, Layout(6, 1))), "(6,8):(1,6)");
  EXPECT_EQ(to_string(group(layout, 0, 2)), "(((2,3),8)):(((1,2),6))");
  EXPECT_EQ(to_string(reverse(layout)), "(8,(2,3)):(6,(1,2))");
  EXPECT_EQ(unflatten(flatten(layout), layout.shape()), layout);
  EXPECT_EQ(to_string(select(layout, {1, 0})), "(8,(2,3)):(6,(1,2))");
  EXPECT_EQ(to_string(dice({{_, 1}, _}, layout)), "(3):(2)");
}

TEST(Layout, SlicesAndTheirOffsets) {
  const Layout layout({{2, 3}, 8}, {{1, 2}, 6});
  const LayoutAndOffset part = slice_and_offset({{1, _}, 5}, layout);
  EXPECT_EQ(to_string(part.layout), "(3):(2)");
  EXPECT_EQ(part.offset, IntTuple(31));
  EXPECT_EQ(slice({_, 5}, layout), Layout(IntTuple{{2, 3}}, IntTuple{{1, 2}}));
  EXPECT_EQ(slice(_, layout), layout);
  EXPECT_EQ(size(slice({1, 2}, layout)), 1);
}

TEST(Layout, MakeLayoutLikeAndMakeFragmentLike) {
  EXPECT_EQ(to_string(make_layout_like(Layout({4, 8, 2}, {16, 0, 1}))), "(4,8,2):(2,0,1)");
  EXPECT_EQ(to_string(make_fragment_like(Layout({{2, 2}, 4, 8}, {{4, 0}, 64, 8}))), "((2,2),4,8):((1,0),16,2)");
  EXPECT_EQ(to_string(make_identity_layout(8)), "8:1");
  EXPECT_EQ(coshape(make_identity_layout({4, {2, 3}})), (IntTuple{4, {2, 3}}));
}

TEST(Layout, OffsetsToCoordinates) {
  const Layout threads({2, {4, 4}}, {16, {1, 4}});
  EXPECT_EQ(hierarchical_coord(threads, 27), (IntTuple{1, {3, 2}}));
  EXPECT_EQ(flat_coord(threads, 27), (IntTuple{1, 11}));
  EXPECT_THROW(flat_coord(threads, 32), InvalidArgument);
}

RC_GTEST_PROP(Layout, IndexAndItsCoordinateHaveOneOffset, ()) {
  const Layout layout = any_layout();
  const auto index = *rc::gen::inRange<std::int64_t>(0, 2 * size(layout));
  RC_ASSERT(layout(index) == layout(idx2crd(index, layout.shape())));
}

RC_GTEST_PROP(Layout, CompactLayoutsAreBijections, ()) {
  const Layout layout = any_compact_layout();
  std::vector<bool> seen(static_cast<std::size_t>(size(layout)));
  for (std::int64_t i = 0; i < size(layout); ++i) seen.at(static_cast<std::size_t>(layout(i))) = true;
  RC_ASSERT(std::find(seen.begin(), seen.end(), false) == seen.end());
  RC_ASSERT(cosize(layout) == size(layout));
}

TEST(Layout, RefusesSumsBeyond63Bits) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const Layout far({2, 2}, {kLargest, kLargest});
  EXPECT_EQ(far(1, 0), kLargest);
  EXPECT_THROW(far(1, 1), InvalidArgument);
  EXPECT_THROW(cosize(far), InvalidArgument);
}

}  // namespace
}  // namespace tilewright::layout
