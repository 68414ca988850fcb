// The cases of PyCuTe's unit tests (CUTLASS 4.7, test/python/pycute), as data.
#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>

#include "postconditions.hpp"

namespace tilewright::layout {
namespace {

struct Pair {
  Layout a, b;
};

const Layout kCoalesce[] = {
    {1, 0},
    {1, 1},
    {{2, 4}, {1, 2}},
    {{2, 4, 6}, {1, 2, 8}},
    {{2, 4, 6}, {1, 6, 2}},
    {{2, 1, 6}, {1, 7, 2}},
    {{2, 1, 6}, {4, 7, 8}},
    {{2, {4, 6}}, {1, {2, 8}}},
    {{2, 4}, {4, 1}},
    {{2, 4, 6}, {24, 6, 1}},
    {{2, 1, 3}, {2, 4, 4}},
    {{{2, 2}, {2, 2}}, {{1, 4}, {8, 32}}},
};

const Layout kComplement[] = {
    {1, 0},
    {1, 1},
    {4, 0},
    {{2, 4}, {1, 2}},
    {{2, 3}, {1, 2}},
    {{2, 4}, {1, 4}},
    {{2, 4, 8}, {8, 1, 64}},
    {{{2, 2}, {2, 2}}, {{1, 4}, {8, 32}}},
    {{2, {3, 4}}, {3, {1, 6}}},
    {{4, 6}, {1, 6}},
    {{4, 10}, {1, 10}},
};

const Pair kComposition[] = {
    {{1, 0}, {1, 0}},
    {{1, 0}, {1, 1}},
    {{1, 1}, {1, 0}},
    {{1, 1}, {1, 1}},
    {{4, 1}, {4, 1}},
    {{4, 2}, {4, 1}},
    {{4, 1}, {4, 2}},
    {{4, 0}, {4, 1}},
    {{4, 1}, {4, 0}},
    {{1, 0}, {4, 1}},
    {{4, 1}, {1, 0}},
    {{4, 1}, {2, 1}},
    {{4, 2}, {2, 1}},
    {{4, 1}, {2, 2}},
    {{4, 2}, {2, 2}},
    {{12, 1}, {{4, 3}, {1, 4}}},
    {{12, 2}, {{4, 3}, {1, 4}}},
    {{12, 1}, {{4, 3}, {3, 1}}},
    {{12, 2}, {{4, 3}, {3, 1}}},
    {{12, 1}, {{2, 3}, {2, 4}}},
    {{{4, 3}, {1, 4}}, {{4, 3}, {1, 4}}},
    {{{4, 3}, {1, 4}}, {12, 1}},
    {{{4, 3}, {1, 4}}, {6, 2}},
    {{{4, 3}, {1, 4}}, {{6, 2}, {2, 1}}},
    {{{4, 3}, {3, 1}}, {{4, 3}, {1, 4}}},
    {{{4, 3}, {3, 1}}, {12, 1}},
    {{{4, 3}, {3, 1}}, {6, 2}},
    {{{4, 3}, {3, 1}}, {{6, 2}, {2, 1}}},
    {{{8, 8}, {1, 8}}, {{{2, 2, 2}, {2, 2, 2}}, {{1, 16, 4}, {8, 2, 32}}}},
    {{{8, 8}, {8, 1}}, {{{2, 2, 2}, {2, 2, 2}}, {{1, 16, 4}, {8, 2, 32}}}},
    {{{{2, 2, 2}, {2, 2, 2}}, {{1, 16, 4}, {8, 2, 32}}}, {8, 4}},
    {{{4, 2}, {1, 16}}, {{4, 2}, {2, 1}}},
    {{{2, 2}, {2, 1}}, {{2, 2}, {2, 1}}},
    {{{4, 8, 2}, {1, 4, 32}}, {{2, 2, 2}, {2, 8, 1}}},
    {{{4, 8, 2}, {2, 8, 1}}, {{2, 2, 2}, {1, 8, 2}}},
    {{{4, 8, 2}, {2, 8, 1}}, {{4, 2, 2}, {2, 8, 1}}},
    {{{4, 6, 8}, {1, 4, 7}}, {6, 1}},
    {{{4, 6, 8, 10}, {2, 3, 5, 7}}, {6, 12}},
};

const Layout kLeftInverse[] = {
    {1, 0},
    {{1, 1}, {0, 0}},
    {1, 1},
    {4, 1},
    {4, 2},
    {{8, 4}, {1, 8}},
    {{8, 4}, {4, 1}},
    {{2, 4, 6}, {1, 2, 8}},
    {{2, 4, 6}, {4, 1, 8}},
    {{4, 2}, {1, 16}},
};

const Layout kRightInverse[] = {
    {1, 0},
    {{1, 1}, {0, 0}},
    {{3, 7}, {0, 0}},
    {1, 1},
    {4, 0},
    {4, 1},
    {4, 2},
    {{2, 4}, {0, 2}},
    {{8, 4}, {1, 8}},
    {{8, 4}, {4, 1}},
    {{2, 4, 6}, {1, 2, 8}},
    {{2, 4, 6}, {4, 1, 8}},
    {{4, 2}, {1, 16}},
};

TEST(PycuteCases, Coalesce) {
  EXPECT_EQ(std::size(kCoalesce), 12U);
  for (const Layout& layout : kCoalesce) EXPECT_EQ(coalesce_breaks(layout), "");
}

TEST(PycuteCases, Complement) {
  EXPECT_EQ(std::size(kComplement), 11U);
  for (const Layout& layout : kComplement) EXPECT_EQ(complement_breaks(layout, 1), "");
}

TEST(PycuteCases, Composition) {
  EXPECT_EQ(std::size(kComposition), 38U);
  for (const auto& [a, b] : kComposition) EXPECT_EQ(composition_breaks(a, b), "");
}

TEST(PycuteCases, LeftInverseOfInjectiveLayoutsMapsOffsetsToIndices) {
  EXPECT_EQ(std::size(kLeftInverse), 10U);
  for (const Layout& layout : kLeftInverse) {
    EXPECT_EQ(left_inverse_breaks(layout), "");
    const Layout inverse = left_inverse(layout);
    for (std::int64_t i = 0; i < size(layout); ++i) EXPECT_EQ(inverse(layout(i)), i) << layout;
  }
}

TEST(PycuteCases, RightInverse) {
  EXPECT_EQ(std::size(kRightInverse), 13U);
  for (const Layout& layout : kRightInverse) EXPECT_EQ(right_inverse_breaks(layout), "");
}

TEST(PycuteCases, IntTuple) {
  EXPECT_EQ(product(2), 2);
  EXPECT_EQ(product(IntTuple{3, 2}), 6);
  EXPECT_EQ(product(product(IntTuple{{2, 3}, 4})), 24);
  EXPECT_EQ(inner_product(2, 3), 6);
  EXPECT_EQ(inner_product(IntTuple{1, 2}, IntTuple{3, 2}), 7);
  EXPECT_EQ(inner_product(IntTuple{{2, 3}, 4}, IntTuple{{2, 1}, 2}), 15);
  EXPECT_EQ(shape_div(IntTuple{3, 4}, 6), (IntTuple{1, 2}));
  EXPECT_EQ(shape_div(IntTuple{3, 4}, 12), (IntTuple{1, 1}));
  EXPECT_EQ(shape_div(IntTuple{3, 4}, 36), (IntTuple{1, 1}));
  EXPECT_EQ(shape_div(IntTuple{{3, 4}, 6}, 36), (IntTuple{{1, 1}, 2}));
  EXPECT_EQ(shape_div(IntTuple{6, {3, 4}}, 36), (IntTuple{1, {1, 2}}));
  EXPECT_EQ(prefix_product(2), IntTuple(1));
  EXPECT_EQ(prefix_product(IntTuple{3, 2}), (IntTuple{1, 3}));
  EXPECT_EQ(prefix_product(IntTuple{3, 2, 4}), (IntTuple{1, 3, 6}));
  EXPECT_EQ(prefix_product(IntTuple{{2, 3}, 4}), (IntTuple{{1, 2}, 6}));
  EXPECT_EQ(prefix_product(IntTuple{{2, 3}, {2, 1, 2}, {5, 2, 1}}), (IntTuple{{1, 2}, {6, 12, 12}, {24, 120, 240}}));
}

/// PyCuTe checks isinstance(x, Integer); here the compiler checks the concept Integer.
template <class T>
constexpr bool is_a_leaf = std::is_constructible_v<IntTuple, T>;

TEST(PycuteCases, IntegerTypesAreCheckedByTheCompiler) {
  static_assert(is_a_leaf<int>);
  static_assert(is_a_leaf<std::int64_t>);
  static_assert(!is_a_leaf<double>);
  static_assert(!is_a_leaf<std::string>);
  static_assert(!is_a_leaf<const char*>);
  static_assert(!is_a_leaf<bool>);
  static_assert(!is_a_leaf<std::uint64_t>, "may not fit");
}

}  // namespace
}  // namespace tilewright::layout
