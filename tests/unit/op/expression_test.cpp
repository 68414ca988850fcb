// Epilogues as C++ expressions: common subexpressions, constant folding, and every function against its formula.
#include "tilewright/op/expression.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>

#include "tilewright/base/error.hpp"

namespace tilewright::op {
namespace {

std::string text_of(const Expression& d) {
  return signature(make_epilogue("graph", DType::f32, d).value_or_throw()).substr(std::string("graph f32 ").size());
}

TEST(Expressions, AreGraphsInTheOrderTheyAreWritten) {
  EXPECT_EQ(text_of(alpha() * acc() + beta() * c()), "add(mul($alpha,acc),mul($beta,c))");
  EXPECT_EQ(text_of(call("relu", {acc() + row("bias")})), "max(add(acc,row(bias)),0x0p+0)");
  EXPECT_EQ(text_of(acc() > c()), "less(c,acc)");
  EXPECT_EQ(text_of(convert(DType::e4m3, -acc())), "convert(e4m3,neg(acc))");
  EXPECT_EQ(text_of(column("x") / single("y") - full("z")), "sub(div(column(x),single(y)),full(z))");
}

TEST(Expressions, MergeCommonSubexpressions) {
  const Expression t = acc() + row("bias");
  const Epilogue epilogue = make_epilogue("graph", DType::f32, t * t, {{"aux", acc() + row("bias")}}).value_or_throw();
  ASSERT_EQ(epilogue.nodes.size(), 4U) << signature(epilogue);
  EXPECT_EQ(epilogue.outputs.front().node, 2);
  EXPECT_EQ(epilogue.node_of_d(), 3);
  EXPECT_EQ((acc() * c()).nodes().size(), 3U);
  EXPECT_EQ((acc() * c() + c() * acc()).nodes().size(), 4U) << "products commute";
}

TEST(Expressions, FoldConstants) {
  EXPECT_EQ(text_of(Expression(2.0) * 3.0 + acc()), "add(0x1.8p+2,acc)");
  EXPECT_EQ(text_of(1.0 * acc() / 1.0), "acc");
  EXPECT_EQ(text_of(acc() + 0.0), "add(acc,0x0p+0)") << "-0 + 0 is 0";
  EXPECT_EQ(text_of(acc() + Expression(1.0) / 0.0), "add(acc,div(0x1p+0,0x0p+0))") << "no constant is infinite";
}

TEST(Expressions, MayPairColumns) {
  const auto reason = [](const Expression& d, const std::vector<NamedOutput>& outputs = {}) {
    const Result<Epilogue> made = make_epilogue("graph", DType::f32, d, outputs);
    return made ? std::string() : made.reason();
  };
  const Expression gate = call("even", {acc()}), through = call("odd", {acc()});
  EXPECT_EQ(reason(gate * through + column("shift") * single("scale"), {{"aux", acc() + row("bias")}}), "");
  EXPECT_EQ(reason(gate + acc()),
            "epilogue 'graph' pairs columns, but its D differs between the two columns of a pair: use even() or odd()");
  EXPECT_EQ(reason(gate * row("scale")),
            "epilogue 'graph' pairs columns, but its D differs between the two columns of a pair: use even() or odd()");
  EXPECT_EQ(reason(gate + c()), "epilogue 'graph' pairs columns and reads C, which has only one column per pair");
  EXPECT_EQ(reason(gate, {{"x", acc(), Reduction::sum, kSingle}}),
            "epilogue 'graph' pairs columns and reduces to 'x': these cannot be combined");
  EXPECT_EQ(reason(gate, {{"x", through}}),
            "epilogue 'graph' stores one value per pair of columns to 'x': only D can have such values");
  const Epilogue epilogue = make_epilogue("graph", DType::f32, gate - 2.0 * through).value_or_throw();
  EXPECT_EQ(epilogue.columns_per_element(), 2);
  const EpilogueElement first{.accumulator = 7.0}, second{.accumulator = 3.0};
  const auto values = evaluate_pair(epilogue, {first, second});
  EXPECT_EQ(values[0].back(), 1.0);
  EXPECT_EQ(values[1].back(), 1.0);
}

TEST(Expressions, InvalidGraphsAreRefused) {
  const auto reason = [](const Expression& d, const std::vector<NamedOutput>& outputs = {},
                         DType compute = DType::f32) {
    const Result<Epilogue> made = make_epilogue("graph", compute, d, outputs);
    return made ? std::string() : made.reason();
  };
  EXPECT_EQ(reason(acc() + row("x"), {{"x", acc()}}), "epilogue 'graph' uses the name 'x' twice");
  EXPECT_EQ(reason(acc() + row("x") + column("x")), "epilogue 'graph' reads 'x' as row and as column");
  EXPECT_EQ(reason(acc() + row("C")), "epilogue 'graph' uses the name 'C' twice");
  EXPECT_EQ(reason(acc() + scalar("x") + row("x")), "epilogue 'graph' uses the name 'x' twice");
  EXPECT_EQ(reason(acc(), {{"x", acc(), Reduction::sum}}),
            "epilogue 'graph' stores 'x' as full with reduction sum: an output is full exactly if it is not reduced");
  EXPECT_EQ(reason(acc(), {{"x", acc(), Reduction::none, kRowVector}}),
            "epilogue 'graph' stores 'x' as row with reduction none: an output is full exactly if it is not reduced");
  EXPECT_EQ(reason(acc(), {{"D", acc()}}), "epilogue 'graph' uses the name 'D' twice");
  EXPECT_EQ(reason(acc(), {{"a b", acc()}}), "the name of an epilogue output must be an identifier, got 'a b'");
  EXPECT_EQ(reason(call("gelu", {acc()}), {}, DType::s32),
            "epilogue node 0 is the constant 0.5, but compute type s32 needs an integer: an output of f32 has the "
            "compute type f32");
  for (const DType type : {DType::f64, DType::tf32, DType::s4, DType::u4, DType::b1})
    EXPECT_EQ(reason(convert(type, acc())), fmt::format("epilogue node 1 cannot convert to {}", name(type)));
  Expression many = acc();
  for (int i = 0; i < 17; ++i) many = many + full("t" + std::to_string(i));
  EXPECT_EQ(reason(many), "epilogue 'graph' has 17 tensors, more than 16");
  EXPECT_THROW(call("sine", {acc()}), InvalidArgument);
  EXPECT_THROW(call("max", {acc()}), InvalidArgument);
}

// Independent formulas, in f64.
const std::map<std::string_view, std::function<double(double, double, double)>> kFormulas{
    {"fma", [](double x, double y, double z) { return x * y + z; }},
    {"min", [](double x, double y, double) { return x < y ? x : y; }},
    {"max", [](double x, double y, double) { return x > y ? x : y; }},
    {"abs", [](double x, double, double) { return x < 0 ? -x : x; }},
    {"neg", [](double x, double, double) { return 0 - x; }},
    {"sqrt", [](double x, double, double) { return x < 0 ? NAN : std::pow(x, 0.5); }},
    {"rsqrt", [](double x, double, double) { return x < 0 ? NAN : std::pow(x, -0.5); }},
    {"reciprocal", [](double x, double, double) { return 1 / x; }},
    {"exp", [](double x, double, double) { return std::exp(x); }},
    {"log", [](double x, double, double) { return std::log(x); }},
    {"log1p", [](double x, double, double) { return std::log1p(x); }},
    {"pow", [](double x, double y, double) { return std::pow(x, y); }},
    {"floor", [](double x, double, double) { return std::floor(x); }},
    {"round", [](double x, double, double) { return std::nearbyint(x); }},
    {"where", [](double x, double y, double z) { return x != 0 ? y : z; }},
    {"clamp", [](double x, double y, double z) { return std::min(std::max(x, y), z); }},
    {"erf", [](double x, double, double) { return std::erf(x); }},
    {"tanh", [](double x, double, double) { return std::tanh(x); }},
    {"square", [](double x, double, double) { return x * x; }},
    {"relu", [](double x, double, double) { return x > 0 ? x : 0; }},
    {"leaky_relu", [](double x, double y, double) { return x > 0 ? x : y * x; }},
    {"sigmoid", [](double x, double, double) { return 0.5 * (1 + std::tanh(x / 2)); }},
    {"silu", [](double x, double, double) { return x * 0.5 * (1 + std::tanh(x / 2)); }},
    {"hardswish", [](double x, double, double) { return x <= -3  ? 0
                                                        : x >= 3 ? x
                                                                 : x * (x + 3) / 6; }},
    {"gelu", [](double x, double, double) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
    {"gelu_tanh",
     [](double x, double, double) {
       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
     }},
    {"softplus", [](double x, double, double) { return std::log(1 + std::exp(x)); }},
    {"mish", [](double x, double, double) { return x * std::tanh(std::log(1 + std::exp(x))); }},
    {"even", [](double x, double, double) { return x; }},
    {"odd", [](double, double y, double) { return y; }},
    {"glu", [](double x, double y, double) { return y * 0.5 * (1 + std::tanh(x / 2)); }},
    {"reglu", [](double x, double y, double) { return x > 0 ? x * y : 0; }},
    {"swiglu", [](double x, double y, double) { return y * x * 0.5 * (1 + std::tanh(x / 2)); }},
    {"geglu", [](double x, double y, double) { return y * x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
    {"geglu_tanh",
     [](double x, double y, double) {
       return y * 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
     }},
};

/// The value at x, y and z; a function that pairs columns has x in the even column and y in the odd one.
double value_of(std::string_view function, double x, double y, double z) {
  const std::array<Expression, 3> inputs{acc(), full("y"), full("z")};
  for (const NamedFunction& each : functions()) {
    if (each.name != function) continue;
    const Expression made = each.apply(std::span(inputs).first(static_cast<std::size_t>(each.arity)));
    const Epilogue epilogue = make_epilogue("graph", DType::f64, made).value_or_throw();
    EpilogueElement element{.accumulator = x};
    for (const EpilogueNode* tensor : epilogue.tensors()) element.tensors.push_back(tensor->label == "y" ? y : z);
    if (epilogue.is_gated()) return evaluate_pair(epilogue, {element, {.accumulator = y}})[0].back();
    return evaluate_nodes(epilogue, element)[static_cast<std::size_t>(epilogue.node_of_d())];
  }
  ADD_FAILURE() << function;
  return 0.0;
}

TEST(Functions, MatchTheirFormulas) {
  for (const NamedFunction& function : functions()) {
    EXPECT_FALSE(function.formula.empty()) << function.name;
    const auto formula = kFormulas.find(function.name);
    if (formula == kFormulas.end()) {
      EXPECT_TRUE(function.name.ends_with("_gradient")) << function.name << " is not tested";
      continue;
    }
    for (const double x : {-7.25, -3.0, -0.5, 0.25, 1.0, 2.5, 3.5, 9.0}) {
      const double expected = formula->second(x, -1.5, 2.0), found = value_of(function.name, x, -1.5, 2.0);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found)) << function.name << " of " << x;
      } else {
        EXPECT_NEAR(found, expected, 1e-13 * std::max(1.0, std::fabs(expected))) << function.name << " of " << x;
      }
    }
  }
}

// Compared with central differences of the function.
TEST(Functions, GradientsAreDerivatives) {
  for (const NamedFunction& function : functions()) {
    const std::size_t end = function.name.rfind("_gradient");
    if (end == std::string_view::npos) continue;
    const std::string_view of = function.name.substr(0, end);
    for (const double x : {-4.0, -2.5, -0.75, 0.3, 1.5, 2.9, 5.0}) {
      constexpr double kStep = 1e-5;
      const double slope = (value_of(of, x + kStep, 0.125, 0) - value_of(of, x - kStep, 0.125, 0)) / (2 * kStep);
      EXPECT_NEAR(value_of(function.name, x, 0.125, 0), slope, 1e-8) << function.name << " at " << x;
    }
  }
}

// docs/epilogues.md has a row for each function.
TEST(Functions, AreDocumented) {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/docs/epilogues.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(document.empty());
  constexpr std::string_view kInputs[] = {"", "x", "x, y", "x, y, z"};
  for (const NamedFunction& function : functions()) {
    std::string formula{function.formula};
    for (std::size_t at = 0; (at = formula.find('|', at)) != std::string::npos; at += 2) formula.insert(at, 1, '\\');
    const std::string row = fmt::format("| `{}` | {} | {} |", function.name, kInputs[function.arity], formula);
    EXPECT_NE(document.find(row), std::string::npos) << row;
  }
}

TEST(Functions, ReductionsAreDocumented) {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/docs/epilogues.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  for (const NamedReduction& reduction : reductions()) {
    std::string formula{reduction.formula};
    for (std::size_t at = 0; (at = formula.find('|', at)) != std::string::npos; at += 2) formula.insert(at, 1, '\\');
    const std::string row = fmt::format("| `{}` | {} |", reduction.name, formula);
    EXPECT_NE(document.find(row), std::string::npos) << row;
  }
}

TEST(Functions, PropagateNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const NamedFunction& function : functions()) {
    if (function.name == "odd") continue;  // it reads only the odd column
    if (function.name == "where" || function.name == "relu_gradient" || function.name == "leaky_relu_gradient" ||
        function.name == "hardswish_gradient")
      continue;  // comparisons with NaN are false
    EXPECT_TRUE(std::isnan(value_of(function.name, nan, 1.0, 2.0))) << function.name;
  }
}

}  // namespace
}  // namespace tilewright::op
