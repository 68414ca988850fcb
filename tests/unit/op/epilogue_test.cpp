// The predefined epilogues against their formulas, and graphs that validate() refuses.
#include "tilewright/op/named_epilogue.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "tilewright/op/expression.hpp"

namespace tilewright::op {
namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(LinearCombination, IsAlphaTimesAccumulatorPlusBetaTimesC) {
  EXPECT_EQ(evaluate(linear_combination(), 3.0, 5.0, 2.0, 10.0), 56.0);
}

TEST(LinearCombination, AZeroScalarIgnoresItsOperand) {
  EXPECT_EQ(evaluate(linear_combination(), 3.0, kNaN, 2.0, 0.0), 6.0);
  EXPECT_EQ(evaluate(linear_combination(), kNaN, 5.0, 0.0, 2.0), 10.0);
  EXPECT_TRUE(std::isnan(evaluate(linear_combination(), kNaN, 5.0, 1.0, 2.0)));
  EXPECT_EQ(linear_combination().gate(EpilogueOp::source), "beta");
  EXPECT_EQ(linear_combination().gate(EpilogueOp::accumulator), "alpha");
}

TEST(Gates, ALeafThatIsAlsoStoredHasNone) {
  const Expression sum = alpha() * acc() + beta() * c();
  EXPECT_EQ(make_epilogue("graph", DType::f32, sum).value_or_throw().gate(EpilogueOp::accumulator), "alpha");
  const Epilogue stored = make_epilogue("graph", DType::f32, sum, {{"aux", acc()}}).value_or_throw();
  EXPECT_EQ(stored.gate(EpilogueOp::accumulator), std::nullopt) << "aux needs A * B even if alpha is 0";
  EXPECT_EQ(stored.gate(EpilogueOp::source), "beta");
}

TEST(Constants, MustBeRepresentableInTheComputeType) {
  const auto reason = [](double value, DType compute) {
    return validate(Epilogue{"constant", compute, {{EpilogueOp::constant, {-1, -1}, value, {}}}}).reason();
  };
  EXPECT_EQ(reason(2147483647.0, DType::s32), "");
  EXPECT_EQ(reason(5e9, DType::s32),
            "epilogue node 0 is the constant 5000000000, beyond the range of compute type s32");
  EXPECT_EQ(reason(1e39, DType::f32), "epilogue node 0 is the constant 1e+39, beyond the range of compute type f32");
  EXPECT_EQ(reason(1e39, DType::f64), "");
}

TEST(LinearCombinationClamp, ClampsToTheOutputType) {
  const Epilogue clamp = linear_combination_clamp(DType::s8);
  EXPECT_EQ(evaluate(clamp, 1000.0, 0.0, 1.0, 0.0), 127.0);
  EXPECT_EQ(evaluate(clamp, -1000.0, 0.0, 1.0, 0.0), -128.0);
  EXPECT_EQ(evaluate(linear_combination_clamp(DType::u8), -5.0, 0.0, 1.0, 0.0), 0.0);
  EXPECT_EQ(evaluate(linear_combination_clamp(DType::f16), 1e6, 0.0, 1.0, 0.0), 65504.0);
}

TEST(Activations, FollowTheirFormulas) {
  const auto value = [](Activation activation, double x) {
    return evaluate(linear_combination_generic(activation), x, 0.0, 1.0, 0.0);
  };
  for (const double x : {-7.0, -3.0, -1.5, -0.1, 0.0, 0.1, 1.0, 2.9, 3.0, 10.0}) {
    EXPECT_DOUBLE_EQ(value(Activation::identity, x), x);
    EXPECT_DOUBLE_EQ(value(Activation::relu, x), std::max(x, 0.0));
    EXPECT_DOUBLE_EQ(value(Activation::leaky_relu, x), x > 0 ? x : 0.2 * x);
    EXPECT_DOUBLE_EQ(value(Activation::tanh, x), std::tanh(x));
    EXPECT_DOUBLE_EQ(value(Activation::sigmoid, x), 1.0 / (1.0 + std::exp(-x)));
    EXPECT_NEAR(value(Activation::silu, x), x / (1.0 + std::exp(-x)), 1e-15 * std::fabs(x));
    EXPECT_NEAR(value(Activation::hardswish, x), x <= -3 ? 0.0 : x >= 3 ? x : x * (x + 3) / 6, 1e-14);
    EXPECT_NEAR(value(Activation::gelu, x), x * 0.5 * std::erfc(-x / std::sqrt(2.0)), 1e-14);
  }
}

TEST(Activations, PropagateNaN) {
  for (const char* text : {"relu", "leaky_relu", "tanh", "sigmoid", "silu", "hardswish", "gelu"}) {
    const Epilogue epilogue = linear_combination_generic(*parse_activation(text));
    EXPECT_TRUE(std::isnan(evaluate(epilogue, kNaN, 0.0, 1.0, 0.0))) << text;
  }
}

TEST(NamedEpilogue, KnowsItsNamesAndRefusesOthers) {
  for (const char* text : {"linear_combination", "linear_combination_clamp", "clamp", "relu", "leaky_relu", "tanh",
                           "sigmoid", "silu", "hardswish", "gelu", "identity"}) {
    const Result<Epilogue> epilogue = named_epilogue(text, DType::f16, DType::f32);
    ASSERT_TRUE(epilogue) << text;
    EXPECT_TRUE(validate(*epilogue));
  }
  EXPECT_FALSE(named_epilogue("mish", DType::f16, DType::f32));
  EXPECT_FALSE(named_epilogue("", DType::f16, DType::f32));
  EXPECT_FALSE(named_epilogue("gelu", DType::s32, DType::s32));
}

TEST(Signatures, DifferForCodeButNotForScalarValues) {
  EXPECT_EQ(signature(linear_combination()), "linear_combination f32 add(mul($alpha,acc),mul($beta,c))");
  EXPECT_EQ(signature(linear_combination_generic(Activation::leaky_relu, DType::f32, 0.1)),
            signature(linear_combination_generic(Activation::leaky_relu, DType::f32, 0.3)));
  EXPECT_NE(signature(linear_combination(DType::f32)), signature(linear_combination(DType::f64)));
}

TEST(Validate, RefusesBrokenGraphs) {
  const auto leaf = [](EpilogueOp op) { return EpilogueNode{op, {-1, -1}, 0.0, {}}; };
  EXPECT_FALSE(validate(Epilogue{"empty", DType::f32, {}}));
  EXPECT_FALSE(validate(Epilogue{"self", DType::f32, {{EpilogueOp::negate, {0, -1}, 0.0, {}}}}));
  EXPECT_FALSE(
      validate(Epilogue{"later", DType::f32, {{EpilogueOp::negate, {1, -1}, 0.0, {}}, leaf(EpilogueOp::source)}}));
  EXPECT_FALSE(validate(Epilogue{"unnamed", DType::f32, {leaf(EpilogueOp::scalar)}}));
  EXPECT_FALSE(validate(Epilogue{"half", DType::f16, {leaf(EpilogueOp::accumulator)}}));
  EXPECT_FALSE(
      validate(Epilogue{"exp", DType::s32, {leaf(EpilogueOp::accumulator), {EpilogueOp::exp, {0, -1}, 0.0, {}}}}));
  EXPECT_TRUE(validate(Epilogue{"plain", DType::f32, {leaf(EpilogueOp::accumulator)}}));
}

// Each node adds its predecessor to itself: n additions expand to 2^(n+1) - 1 terms.
TEST(Validate, RefusesASignatureThatDoublesWithEveryNode) {
  const auto doublings = [](int count) {
    Epilogue epilogue{"doublings", DType::f32, {{EpilogueOp::accumulator, {-1, -1}, 0.0, {}}}};
    for (int i = 0; i < count; ++i) epilogue.nodes.push_back({EpilogueOp::add, {i, i}, 0.0, {}});
    return epilogue;
  };
  Epilogue largest = doublings(11);  // 4095 terms
  EXPECT_TRUE(validate(largest)) << validate(largest).reason();
  largest.nodes.push_back({EpilogueOp::negate, {11, -1}, 0.0, {}});
  EXPECT_TRUE(validate(largest)) << "4096 terms";
  largest.nodes.push_back({EpilogueOp::negate, {12, -1}, 0.0, {}});
  EXPECT_FALSE(validate(largest)) << "4097 terms";
  EXPECT_EQ(validate(doublings(200)).reason(),
            "epilogue 'doublings' of 201 nodes has more than 4096 terms when every use of a node is expanded");
}

}  // namespace
}  // namespace tilewright::op
