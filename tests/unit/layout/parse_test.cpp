// The parser: what it accepts, that it accepts what is printed, and refusals with the column.
#include "tilewright/layout/parse.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "layout_generators.hpp"
#include "tilewright/layout/syntax.hpp"

namespace tilewright::layout {
namespace {

template <class T>
std::string reason(const Result<T>& result) {
  return result ? "accepted" : result.reason();
}

TEST(Parse, Tuples) {
  EXPECT_EQ(*parse_int_tuple("8"), IntTuple(8));
  EXPECT_EQ(*parse_int_tuple("-3"), IntTuple(-3));
  EXPECT_EQ(*parse_int_tuple("()"), IntTuple::tuple(std::vector<IntTuple>{}));
  EXPECT_EQ(*parse_int_tuple("(8)"), (IntTuple{8}));
  EXPECT_EQ(*parse_int_tuple(" ( (2 ,2), 8 ) "), (IntTuple{{2, 2}, 8}));
  EXPECT_EQ(*parse_int_tuple("(8,)"), (IntTuple{8})) << "as Python prints a tuple of one element";
  EXPECT_EQ(*parse_int_tuple("(_,3)"), (IntTuple{_, 3}));
  EXPECT_EQ(*parse_int_tuple("9223372036854775807"), IntTuple(INT64_MAX));
}

// CuTe prints ScaledBasis innermost mode first: E<0,1> is 1@1@0 (arithmetic_tuple.hpp, print).
TEST(Parse, ScaledBases) {
  EXPECT_EQ(*parse_int_tuple("1@0"), IntTuple::scaled_basis(1, {0}));
  EXPECT_EQ(*parse_int_tuple("64@1@0"), IntTuple::scaled_basis(64, {0, 1}));
  EXPECT_EQ(*parse_layout("(4,8):(1@0,1@1)"), make_identity_layout({4, 8}));
}

TEST(Parse, Layouts) {
  EXPECT_EQ(*parse_layout("8:1"), Layout(8, 1));
  EXPECT_EQ(*parse_layout("((2,2),8):((1,4),2)"), Layout({{2, 2}, 8}, {{1, 4}, 2}));
  EXPECT_EQ(*parse_layout("((8,64):(64,1))"), Layout({8, 64}, {64, 1}));
  EXPECT_EQ(*parse_layout("(4,3):(-1,0)"), Layout({4, 3}, {-1, 0}));
}

// CuTe C++ prints static integers with an underscore: _8:_1.
TEST(Parse, StaticIntegersOfCute) {
  EXPECT_EQ(*parse_int_tuple("_2"), IntTuple(2));
  EXPECT_EQ(*parse_layout("_8:_1"), Layout(8, 1));
  EXPECT_EQ(*parse_layout("((_2,_2),8):((_1,_4),_2)"), Layout({{2, 2}, 8}, {{1, 4}, 2}));
  EXPECT_EQ(*parse_composed_layout("Sw<3,4,3> o _0 o (_8,_64):(_64,_1)"),
            (ComposedLayout{Swizzle(3, 4, 3), 0, Layout({8, 64}, {64, 1})}));
}

TEST(Parse, Swizzles) {
  EXPECT_EQ(*parse_swizzle("Sw<3,4,3>"), Swizzle(3, 4, 3));
  EXPECT_EQ(*parse_swizzle("Sw<2,0,-3>"), Swizzle(2, 0, -3));
  const ComposedLayout swizzled{Swizzle(3, 3, 3), 128, Layout({8, 64}, {64, 1})};
  EXPECT_EQ(*parse_composed_layout("Sw<3,3,3> o 128 o (8,64):(64,1)"), swizzled);
  EXPECT_EQ(*parse_composed_layout("8:1"), (ComposedLayout{Swizzle(), 0, Layout(8, 1)}));
}

TEST(Parse, Tilers) {
  EXPECT_EQ(*parse_tiler("<3:3,(2,4):(1,8)>"), (Tiler{Layout(3, 3), Layout({2, 4}, {1, 8})}));
  EXPECT_EQ(*parse_tiler("<8,_>"), (Tiler{Layout(8, 1), _}));
  EXPECT_EQ(*parse_tiler("(3:3,(2,4):(1,8))"), *parse_tiler("<3:3,(2,4):(1,8)>")) << "as CuTe C++ prints a tiler";
  EXPECT_EQ(*parse_tiler("(128,64)"), make_tiler({128, 64}));
  EXPECT_EQ(*parse_tiler("4:1"), Tiler(Layout(4, 1)));
}

TEST(Parse, RefusesWithTheColumn) {
  EXPECT_EQ(reason(parse_layout("")), "column 1: expected an integer, '(', '<' or a name, got the end");
  EXPECT_EQ(reason(parse_layout("(4,8")), "column 5: expected ',' or ')', got the end");
  EXPECT_EQ(reason(parse_layout("(4 8):1")), "column 4: expected ',' or ')', got '8'");
  EXPECT_EQ(reason(parse_layout("(4,8)")), "column 1: expected a layout, got tuple (4,8)");
  EXPECT_EQ(reason(parse_layout("  (4,8):1")), "column 3: stride 1 is not congruent to shape (4,8)");
  EXPECT_EQ(reason(parse_layout("8:1:1")), "column 4: expected the end, got ':'");
  EXPECT_EQ(reason(parse_layout("(8:1)(2)")), "column 6: expected the end, got '('");
  EXPECT_EQ(reason(parse_layout("coalesce(8:1)")), "column 1: expected a value, got a call of coalesce");
  EXPECT_EQ(reason(parse_layout("8:1 o 4:2")), "column 1: expected a swizzle or an offset");
  EXPECT_EQ(reason(parse_layout("8:1\x01")), "column 4: expected the end, got '\\x01'");
  EXPECT_EQ(reason(parse_int_tuple("(1,9223372036854775808)")), "column 4: the integer does not fit in 63 bits");
  EXPECT_EQ(reason(parse_int_tuple("(1,-)")), "column 5: expected an integer, got ')'");
  EXPECT_EQ(reason(parse_int_tuple("1@128")), "column 3: a mode is 0 to 127, got 128");
  EXPECT_EQ(reason(parse_int_tuple("1@0@0@0@0@0@0@0@0")), "column 17: a basis is at most 7 deep");
  EXPECT_EQ(reason(parse_swizzle("Sw<3,4>")), "column 7: expected ',', got '>'");
  EXPECT_EQ(reason(parse_swizzle("Sw<3,4,99>")), "column 1: the parameters of a swizzle are from -63 to 63, got 99");
  EXPECT_EQ(reason(parse_tiler("<Sw<3,4,3>>")),
            "column 1: a tiler consists of layouts, integers and _, got swizzle Sw<3,4,3>");
}

TEST(Parse, RefusesTextBeyondTheLimits) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '(') + "1" + std::string(static_cast<std::size_t>(depth), ')');
  };
  EXPECT_TRUE(parse_int_tuple(nested(max_expression_depth - 1)));
  EXPECT_EQ(reason(parse_int_tuple(nested(max_expression_depth))),
            "column 65: an expression is nested at most 64 deep");
  EXPECT_EQ(reason(parse_int_tuple(nested(2000))), "column 65: an expression is nested at most 64 deep");
  EXPECT_NE(reason(parse_int_tuple(std::string(1 << 20, '('))).find("at most 4096 characters, got 1048576"),
            std::string::npos);
}

RC_GTEST_PROP(Parse, ParsesWhatIsPrinted, ()) {
  const Layout layout = any_layout();
  RC_ASSERT(*parse_layout(to_string(layout)) == layout);
  RC_ASSERT(*parse_int_tuple(to_string(layout.shape())) == layout.shape());
  const Layout identity = make_identity_layout(layout.shape());
  RC_ASSERT(*parse_layout(to_string(identity)) == identity);
  const ComposedLayout swizzled{Swizzle(3, *rc::gen::inRange(0, 5), 3), *rc::gen::inRange<std::int64_t>(0, 100),
                                layout};
  RC_ASSERT(*parse_composed_layout(to_string(swizzled)) == swizzled);
  const Tiler tiler{layout, _, Tiler{Layout(4, 1), layout}};
  RC_ASSERT(*parse_tiler(to_string(tiler)) == tiler);
}

}  // namespace
}  // namespace tilewright::layout
