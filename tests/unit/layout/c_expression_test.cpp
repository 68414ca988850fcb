// Constant folding, and parentheses only where C's precedence needs them.
#include "tilewright/layout/c_expression.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "c_evaluator.hpp"

namespace tilewright::layout {
namespace {

const CExpression a("a"), b("b"), c("c");

TEST(CExpression, ParenthesesForPrecedence) {
  EXPECT_EQ((a + b * c).text(), "a + b * c");
  EXPECT_EQ(((a + b) * c).text(), "(a + b) * c");
  EXPECT_EQ((a << (b + c)).text(), "a << b + c");
  EXPECT_EQ(((a << b) + c).text(), "(a << b) + c");
  EXPECT_EQ(((a >> 3) << 4).text(), "a >> 3 << 4");
  EXPECT_EQ((a >> (b >> c)).text(), "a >> (b >> c)");
  EXPECT_EQ((((a >> 3) & 7) ^ b).text(), "a >> 3 & 7 ^ b");
  EXPECT_EQ(((a ^ b) & c).text(), "(a ^ b) & c");
  EXPECT_EQ(((a & b) | (b ^ c)).text(), "a & b | b ^ c");
  EXPECT_EQ((a & (b | c)).text(), "a & (b | c)");
}

TEST(CExpression, ParenthesesForAssociativity) {
  EXPECT_EQ((a - b - c).text(), "a - b - c");
  EXPECT_EQ((a - (b - c)).text(), "a - (b - c)");
  EXPECT_EQ((a - (b + c)).text(), "a - (b + c)");
  EXPECT_EQ((a + (b - c)).text(), "a + b - c");
  EXPECT_EQ((a / b / c).text(), "a / b / c");
  EXPECT_EQ((a / (b * c)).text(), "a / (b * c)");
  EXPECT_EQ((a * (b / c)).text(), "a * (b / c)");
  EXPECT_EQ((a * (b * c)).text(), "a * b * c");
  EXPECT_EQ((a % b * c).text(), "a % b * c");
  EXPECT_EQ((a ^ (b ^ c)).text(), "a ^ b ^ c");
}

TEST(CExpression, Folds) {
  EXPECT_EQ((CExpression(3) * 4 + 5).text(), "17");
  for (const CExpression& same :
       {a + 0, 0 + a, a - 0, a * 1, 1 * a, a / 1, a << 0, a >> 0, a | 0, 0 | a, a ^ 0, 0 ^ a}) {
    EXPECT_EQ(same.text(), "a");
  }
  for (const CExpression& zero : {a * 0, 0 * a, 0 / a, 0 % a, a % 1, a & 0, 0 & a, 0 << a, 0 >> a}) {
    EXPECT_EQ(zero.text(), "0");
  }
  EXPECT_EQ((a + -4).text(), "a - 4");
  EXPECT_EQ((a * -4).text(), "a * -4");
}

TEST(CExpression, MasksInHexadecimal) {
  EXPECT_EQ((a & 7).text(), "a & 7");
  EXPECT_EQ((a & 16).text(), "a & 0x10");
  EXPECT_EQ((a & 0x3f).text(), "a & 0x3f");
  EXPECT_EQ((a + 63).text(), "a + 63");
}

/// An expression of x and y, and its value.
struct Sample {
  CExpression code;
  std::int64_t value;
};

/// An operator applied to both, with operands that keep values small.
template <class Op>
Sample apply(Op op, const Sample& l, const Sample& r) {
  return {op(l.code, r.code), op(l.value, r.value)};
}

Sample draw_leaf(std::int64_t x, std::int64_t y) {
  const auto constant = *rc::gen::inRange<std::int64_t>(0, 100);
  return *rc::gen::element(Sample{CExpression("x"), x}, Sample{CExpression("y"), y}, Sample{constant, constant});
}

Sample draw(int depth, std::int64_t x, std::int64_t y) {
  if (depth == 0) return draw_leaf(x, y);
  const Sample l = draw(depth - 1, x, y);
  const Sample r = draw(*rc::gen::inRange(0, depth), x, y);
  const auto by = *rc::gen::inRange<std::int64_t>(1, 5);
  const Sample constant{by, by};
  const Sample mask{255, 255};
  const auto both = [](const auto& p, const auto& q) { return p & q; };
  switch (*rc::gen::inRange(0, 11)) {
    case 0:
      return apply([](const auto& p, const auto& q) { return p / q; }, l, constant);
    case 1:
      return apply([](const auto& p, const auto& q) { return p % q; }, l, constant);
    case 2:
      return apply([](const auto& p, const auto& q) { return p << q; }, l, constant);
    case 3:
      return apply([](const auto& p, const auto& q) { return p >> q; }, l, constant);
    case 4:
      return apply([](const auto& p, const auto& q) { return p * q; }, apply(both, l, mask), apply(both, r, mask));
    case 5:
      return apply(both, l, r);
    case 6:
      return apply([](const auto& p, const auto& q) { return p ^ q; }, l, r);
    case 7:
      return apply([](const auto& p, const auto& q) { return p | q; }, l, r);
    case 8:
      return apply([](const auto& p, const auto& q) { return p - q; }, l, r);
    default:
      return apply([](const auto& p, const auto& q) { return p + q; }, l, r);
  }
}

RC_GTEST_PROP(CExpressionProperty, TheTextEvaluatesToTheValue, ()) {
  for (int i = 0; i < 50; ++i) {
    const auto x = *rc::gen::inRange<std::int64_t>(0, 1000);
    const auto y = *rc::gen::inRange<std::int64_t>(0, 1000);
    const Sample sample = draw(*rc::gen::inRange(0, 5), x, y);
    const std::string text = sample.code.text();
    RC_LOG() << text;
    RC_ASSERT(CEvaluator(text, {"x", "y"})({x, y}) == sample.value);
  }
}

}  // namespace
}  // namespace tilewright::layout
