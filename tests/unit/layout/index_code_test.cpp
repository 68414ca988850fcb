// Generated code: short, without divisions by powers of two, equal to the layout.
#include "tilewright/layout/index_code.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "c_evaluator.hpp"
#include "layout_generators.hpp"
#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

TEST(IndexCode, OfLayouts) {
  EXPECT_EQ(index_code(Layout({8, 64}, {64, 1}), {"row", "col"}), "row * 64 + col");
  EXPECT_EQ(index_code(Layout({8, 8}, {72, 1}), {"row", "col"}), "row * 72 + col") << "padded";
  EXPECT_EQ(index_code(Layout({4, 8}, {0, 1}), {"i", "j"}), "j");
  EXPECT_EQ(index_code(Layout({1, 8}, {5, 1}), {"i", "j"}), "j") << "i is 0";
  EXPECT_EQ(index_code(Layout({4, 8}, {0, 0}), {"i", "j"}), "0");
  EXPECT_EQ(index_code(Layout({3, 4}, {1, 3}), {"i", "j"}), "i + j * 3");
  EXPECT_EQ(index_code(Layout({4, 8}, {-1, 8}), {"i", "j"}), "j * 8 - i");
  EXPECT_EQ(index_code(Layout(4, -2), {"i"}), "i * -2");
}

TEST(IndexCode, OfOneVariableForSeveralModes) {
  EXPECT_EQ(index_code(Layout({{2, 3}, 4}, {{1, 2}, 6}), {"i"}), "i") << "coalesces to one mode";
  EXPECT_EQ(index_code(Layout({4, 8}, {8, 1}), {"i"}), "(i & 3) << 3 | i >> 2");
  EXPECT_EQ(index_code(Layout({2, 2, 2}, {1, 8, 4}), {"x"}), "(x & 2) << 2 | x & 5")
      << "bits 0 and 2 keep their places";
  EXPECT_EQ(index_code(Layout({32, 2, 2}, {0, 12, 0}), {"x"}), "(x >> 5 & 1) * 12");
  EXPECT_EQ(index_code(Layout({8, 4}, {0, 1}), {"x"}), "x >> 3");
  EXPECT_EQ(index_code(Layout({8, 4}, {1, 0}), {"x"}), "x & 7");
  EXPECT_EQ(index_code(Layout({{8, 4}, {8, 2}}, {{1, 64}, {8, 256}}), {"i", "j"}),
            "i >> 3 << 6 | i & 7 | j >> 3 << 8 | (j & 7) << 3");
}

TEST(IndexCode, DividesOncePerDigit) {
  EXPECT_EQ(index_code(Layout({6, 4}, {1, 10}), {"x"}), "x + x / 6 * 4") << "x % 6 + x / 6 * 10";
  EXPECT_EQ(index_code(Layout({6, 4}, {1, 0}), {"x"}), "x % 6");
  EXPECT_EQ(index_code(Layout({6, 4}, {0, 1}), {"x"}), "x / 6");
  EXPECT_EQ(index_code(Layout({4, 3, 2}, {0, 1, 0}), {"x"}), "(x >> 2) % 3");
  EXPECT_EQ(index_code(Layout({3, 4, 2}, {0, 1, 0}), {"x"}), "x / 3 & 3");
  EXPECT_EQ(index_code(Layout({4, 6}, {6, 1}), {"x"}), "(x & 3) * 6 + (x >> 2)") << "the last extent does not wrap";
}

TEST(IndexCode, ExtentsRemoveTermsThatAreZero) {
  const Layout tile({{8, 8}, 4}, {{1, 64}, 8});
  EXPECT_EQ(index_code(tile, {{"lane", 8}, "j"}), "lane + j * 8");
  EXPECT_EQ(index_code(tile, {"lane", {"j", 1}}), "lane >> 3 << 6 | lane & 7");
  EXPECT_EQ(index_code(Layout({6, 4}, {1, 10}), {{"x", 6}}), "x");
  EXPECT_EQ(index_code(Layout({6, 4}, {1, 10}), {{"x", 1}}), "0");
}

// Row addresses of ldmatrix in a tile with rows of 128 bytes: 16-byte chunk c of row r is at r*128 ^ ((r%8)<<4) ^ c*16,
// the 128-byte swizzle of the PTX ISA.
TEST(IndexCode, OfSwizzledTiles) {
  const ComposedLayout bytes{Swizzle(3, 4, 3), 0, Layout({64, 8}, {128, 16})};
  EXPECT_EQ(index_code(bytes, {"row", "chunk"}), "row << 7 | (chunk ^ row & 7) << 4");
  EXPECT_EQ(index_code(bytes, {"row", "chunk"}, IndexStyle::sums), "row * 128 + (chunk ^ row % 8) * 16");
  EXPECT_EQ(index_code(bytes, {{"row", 8}, "chunk"}), "row << 7 | (chunk ^ row) << 4");
  EXPECT_EQ(index_code(bytes, {{"row", 1}, "chunk"}), "chunk * 16") << "row is 0, so there is no swizzle";
  EXPECT_EQ(index_code(bytes, {"row", {"chunk", 1}}), "row << 7 | (row & 7) << 4");
  const ComposedLayout halves{Swizzle(3, 3, 3), 0, Layout({8, 64}, {64, 1})};
  EXPECT_EQ(index_code(halves, {"row", "col"}), "row << 6 | col ^ row << 3");
  const ComposedLayout plain{Swizzle(0, 4, 3), 0, Layout({8, 64}, {64, 1})};
  EXPECT_EQ(index_code(plain, {"row", "col"}), "row * 64 + col");
}

TEST(IndexCode, FoldsOffsetsIntoSwizzles) {
  EXPECT_EQ(index_code(ComposedLayout{Swizzle(3, 4, 3), 128, Layout(8, 16)}, {"chunk"}), "chunk * 16 ^ 144")
      << "row 1: chunks are exchanged";
  EXPECT_EQ(index_code(ComposedLayout{Swizzle(3, 4, 3), 1024, Layout(8, 16)}, {"chunk"}), "chunk * 16 + 1024")
      << "row 8: chunks are not exchanged";
  EXPECT_EQ(index_code(ComposedLayout{Swizzle(), 5, Layout(8, 16)}, {"i"}), "i * 16 + 5");
}

TEST(IndexCode, SwizzlesSumsThatCarry) {
  EXPECT_EQ(index_code(ComposedLayout{Swizzle(1, 0, 1), 0, Layout({3, 3}, {1, 1})}, {"i", "j"}),
            "i + j ^ i + j >> 1 & 1");
}

// Operand A of mma.m16n8k16 (PTX ISA): four lanes hold a row.
TEST(IndexCode, OfFragments) {
  EXPECT_EQ(index_code(Layout({{4, 8}, {2, 2, 2}}, {{32, 1}, {16, 8, 128}}), {"lane", "v"}),
            "(lane & 3) << 5 | lane >> 2 | v >> 2 << 7 | (v & 1) << 4 | (v & 2) << 2");
}

TEST(IndexCode, OfCoordinates) {
  const auto basis = [](std::int64_t value, int mode) { return IntTuple::scaled_basis(value, {mode}); };
  EXPECT_EQ(coordinate_code(Layout({64, 128}, {basis(1, 1), basis(1, 0)}), {"k", "m"}),
            (std::vector<std::string>{"m", "k"}));
  EXPECT_EQ(coordinate_code(Layout({4, {8, 2}}, {basis(1, 1), {basis(1, 0), basis(64, 1)}}), {"i", "j"}),
            (std::vector<std::string>{"j & 7", "i | j >> 3 << 6"}));
  EXPECT_EQ(coordinate_code(Layout({4, 8}, {8, 1}), {"i", "j"}), (std::vector<std::string>{"i * 8 + j"}));
}

TEST(IndexCode, Refusals) {
  const Layout tile({8, 64}, {64, 1});
  EXPECT_THROW(index_code(tile, {}), InvalidArgument);
  EXPECT_THROW(index_code(tile, {"i", "j", "k"}), InvalidArgument);
  EXPECT_THROW(index_code(tile, {"i", "j + 1"}), InvalidArgument);
  EXPECT_THROW(index_code(tile, {"i", "2j"}), InvalidArgument);
  EXPECT_THROW(index_code(tile, {"i", ""}), InvalidArgument);
  EXPECT_THROW(index_code(tile, {{"i", 9}, "j"}), InvalidArgument);
  EXPECT_THROW(index_code(tile, {{"i", -1}, "j"}), InvalidArgument);
  EXPECT_THROW(index_code(ComposedLayout{Swizzle(3, 3, 3), 0, Layout({8, 64}, {-64, 1})}, {"i", "j"}), InvalidArgument);
  EXPECT_THROW(index_code(ComposedLayout{Swizzle(3, 3, 3), -8, tile}, {"i", "j"}), InvalidArgument);
  EXPECT_THROW(index_code(Layout({4, 4}, {IntTuple::scaled_basis(1, {0}), IntTuple::scaled_basis(1, {1})}), {"i", "j"}),
               InvalidArgument);
}

/// Expects that the code with one variable per mode, and the code with one index, equal the layout everywhere.
template <class AnyLayout>
void expect_same_function(const AnyLayout& layout, const IntTuple& shape) {
  const std::int64_t size = product(shape);
  const CEvaluator whole(index_code(layout, {"x"}), {"x"});
  std::vector<IndexVariable> variables;
  std::vector<std::string> names;
  for (int i = 0; i < shape.rank(); ++i) {
    names.push_back("v" + std::to_string(i));
    variables.emplace_back(names.back());
  }
  const std::string text = index_code(layout, variables);
  const CEvaluator by_mode(text, names);
  for (std::int64_t x = 0; x < size; ++x) {
    const std::int64_t expected = layout(x);
    RC_ASSERT(whole({x}) == expected);
    std::vector<std::int64_t> coordinate;
    std::int64_t rest = x;
    for (int i = 0; i < shape.rank(); ++i) {
      coordinate.push_back(rest % product(shape[i]));
      rest /= product(shape[i]);
    }
    RC_ASSERT(by_mode(coordinate) == expected);
  }
}

Swizzle any_swizzle() {
  const int bits = *rc::gen::inRange(0, 4);
  const int shift = *rc::gen::inRange(bits, 5);
  return {bits, *rc::gen::inRange(0, 5), *rc::gen::element(1, -1) * shift};
}

Layout any_power_of_two_layout() {
  const IntTuple shape = draw_leaves(*any_shape(), rc::gen::element<std::int64_t>(1, 2, 4, 8));
  return make_layout(shape, draw_leaves(shape, rc::gen::element<std::int64_t>(0, 1, 2, 4, 8, 16, 64, 128)));
}

constexpr int kLayouts = 30;  // layouts per case of a property

RC_GTEST_PROP(IndexCodeProperty, EqualsTheLayout, ()) {
  for (int i = 0; i < kLayouts; ++i) {
    const Layout layout = any_layout();
    expect_same_function(layout, layout.shape());
  }
}

RC_GTEST_PROP(IndexCodeProperty, EqualsLayoutsOfAnyStride, ()) {
  const IntTuple shape = *any_shape();
  const Layout layout = make_layout(shape, draw_leaves(shape, rc::gen::inRange<std::int64_t>(-40, 41)));
  expect_same_function(layout, shape);
}

RC_GTEST_PROP(IndexCodeProperty, EqualsSwizzledLayouts, ()) {
  for (int i = 0; i < kLayouts; ++i) {
    const ComposedLayout layout{any_swizzle(), *rc::gen::inRange<std::int64_t>(0, 200), any_layout()};
    expect_same_function(layout, layout.layout.shape());
  }
}

RC_GTEST_PROP(IndexCodeProperty, EqualsSwizzledCompactLayouts, ()) {
  for (int i = 0; i < kLayouts; ++i) {
    const ComposedLayout layout{any_swizzle(), 0, any_compact_layout()};
    expect_same_function(layout, layout.layout.shape());
  }
}

RC_GTEST_PROP(IndexCodeProperty, PowersOfTwoNeedNoDivision, ()) {
  const Layout layout = any_power_of_two_layout();
  expect_same_function(layout, layout.shape());
  const ComposedLayout swizzled{any_swizzle(), *rc::gen::element<std::int64_t>(0, 64, 4096), layout};
  expect_same_function(swizzled, layout.shape());
  for (const std::string& text : {index_code(layout, {"x"}), index_code(swizzled, {"x"})})
    RC_ASSERT(text.find_first_of("/%") == std::string::npos);
}

RC_GTEST_PROP(IndexCodeProperty, OneDivisionPerDigit, ()) {
  const Layout layout = any_layout();
  const std::string text = index_code(layout, {"x"});
  const auto divisions = std::count_if(text.begin(), text.end(), [](char c) { return c == '/' || c == '%'; });
  RC_ASSERT(divisions <= std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(leaves(layout.shape()).size()) - 1));
}

RC_GTEST_PROP(IndexCodeProperty, IsCorrectBelowTheExtents, ()) {
  const ComposedLayout layout{any_swizzle(), 0, any_layout()};
  const std::int64_t extent = *rc::gen::inRange<std::int64_t>(1, size(layout) + 1);
  const CEvaluator code(index_code(layout, {{"x", extent}}), {"x"});
  const CEvaluator plain(index_code(layout.layout, {{"x", extent}}), {"x"});
  for (std::int64_t x = 0; x < extent; ++x) {
    RC_ASSERT(code({x}) == layout(x));
    RC_ASSERT(plain({x}) == layout.layout(x));
  }
}

}  // namespace
}  // namespace tilewright::layout
