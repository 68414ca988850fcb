#include "tilewright/op/expression.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::op {

/// Appends nodes in topological order, with constant folding and common subexpression elimination.
class EpilogueGraph {
 public:
  explicit EpilogueGraph(std::vector<EpilogueNode>& nodes) : nodes_(nodes) {}

  /// Returns the index of the node, or of the node that it is folded to.
  int add(EpilogueNode node) {
    if (is_commutative(node.op) && node.inputs[0] > node.inputs[1]) std::swap(node.inputs[0], node.inputs[1]);
    fold(node);
    if (const int same = identity(node); same >= 0) return same;
    const auto found = std::ranges::find(nodes_, node);
    if (found != nodes_.end()) return static_cast<int>(found - nodes_.begin());
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }

  /// Adds all nodes of the expression and returns the index of its root.
  int add(const Expression& expression) {
    std::vector<int> place;
    for (EpilogueNode node : expression.nodes_) {
      for (int side = 0; side < arity(node.op); ++side) {
        int& input = node.inputs[static_cast<std::size_t>(side)];
        input = place[static_cast<std::size_t>(input)];
      }
      place.push_back(add(std::move(node)));
    }
    return place[static_cast<std::size_t>(expression.root_)];
  }

 private:
  static bool is_commutative(EpilogueOp op) {
    return op == EpilogueOp::add || op == EpilogueOp::multiply || op == EpilogueOp::maximum ||
           op == EpilogueOp::minimum || op == EpilogueOp::equal;
  }

  const EpilogueNode& input(const EpilogueNode& node, std::size_t side) const {
    return nodes_[static_cast<std::size_t>(node.inputs[side])];
  }
  bool is_constant(const EpilogueNode& node, std::size_t side, double value) const {
    return input(node, side).op == EpilogueOp::constant && input(node, side).value == value;
  }

  /// Replaces a function of constants by its value, if that is finite.
  void fold(EpilogueNode& node) const {
    if (node.op == EpilogueOp::even || node.op == EpilogueOp::odd) return;  // validate() needs them
    const auto count = static_cast<std::size_t>(arity(node.op));
    if (count == 0 || node.op == EpilogueOp::convert) return;
    std::array<double, 3> values{};
    for (std::size_t side = 0; side < count; ++side) {
      if (input(node, side).op != EpilogueOp::constant) return;
      values[side] = input(node, side).value;
    }
    const double value = apply(node.op, values[0], values[1], values[2]);
    if (std::isfinite(value)) node = EpilogueNode{.op = EpilogueOp::constant, .value = value};
  }

  /// The input that the node returns unchanged, also for NaN (x * 1, x / 1); otherwise -1.
  int identity(const EpilogueNode& node) const {
    if (node.op == EpilogueOp::multiply && is_constant(node, 0, 1.0)) return node.inputs[1];
    const bool is_scaled = node.op == EpilogueOp::multiply || node.op == EpilogueOp::divide;
    return is_scaled && is_constant(node, 1, 1.0) ? node.inputs[0] : -1;
  }

  std::vector<EpilogueNode>& nodes_;
};

Expression::Expression(double constant) : Expression(EpilogueNode{.op = EpilogueOp::constant, .value = constant}) {}

Expression::Expression(EpilogueNode leaf) : nodes_{std::move(leaf)} {}

Expression::Expression(EpilogueOp op, std::initializer_list<Expression> inputs, DType type) {
  TILEWRIGHT_CHECK(static_cast<int>(inputs.size()) == arity(op), "'{}' of {} inputs", op::name(op), inputs.size());
  EpilogueGraph graph(nodes_);
  EpilogueNode node{.op = op, .type = type};
  std::size_t side = 0;
  for (const Expression& input : inputs) node.inputs[side++] = graph.add(input);
  root_ = graph.add(std::move(node));
}

namespace {

Expression labelled(EpilogueOp op, std::string label, double value, const Broadcast& broadcast) {
  return Expression(EpilogueNode{.op = op, .value = value, .label = std::move(label), .broadcast = broadcast});
}

}  // namespace

Expression acc() { return Expression(EpilogueNode{.op = EpilogueOp::accumulator}); }
Expression c() { return Expression(EpilogueNode{.op = EpilogueOp::source}); }
Expression alpha() { return scalar("alpha"); }
Expression beta() { return scalar("beta"); }
Expression scalar(std::string label, double value) { return labelled(EpilogueOp::scalar, std::move(label), value, {}); }
Expression full(std::string label) { return labelled(EpilogueOp::tensor, std::move(label), 0.0, kFull); }
Expression row(std::string label) { return labelled(EpilogueOp::tensor, std::move(label), 0.0, kRowVector); }
Expression column(std::string label) { return labelled(EpilogueOp::tensor, std::move(label), 0.0, kColumnVector); }
Expression single(std::string label) { return labelled(EpilogueOp::tensor, std::move(label), 0.0, kSingle); }
Expression row_index() { return Expression(EpilogueNode{.op = EpilogueOp::row_index}); }
Expression column_index() { return Expression(EpilogueNode{.op = EpilogueOp::column_index}); }

Expression operator+(const Expression& x, const Expression& y) { return {EpilogueOp::add, {x, y}}; }
Expression operator-(const Expression& x, const Expression& y) { return {EpilogueOp::subtract, {x, y}}; }
Expression operator*(const Expression& x, const Expression& y) { return {EpilogueOp::multiply, {x, y}}; }
Expression operator/(const Expression& x, const Expression& y) { return {EpilogueOp::divide, {x, y}}; }
Expression operator-(const Expression& x) { return {EpilogueOp::negate, {x}}; }
Expression operator<(const Expression& x, const Expression& y) { return {EpilogueOp::less, {x, y}}; }
Expression operator<=(const Expression& x, const Expression& y) { return {EpilogueOp::less_equal, {x, y}}; }
Expression operator>(const Expression& x, const Expression& y) { return y < x; }
Expression operator>=(const Expression& x, const Expression& y) { return y <= x; }
Expression operator==(const Expression& x, const Expression& y) { return {EpilogueOp::equal, {x, y}}; }
Expression operator!=(const Expression& x, const Expression& y) { return 1.0 - (x == y); }

bool is_convertible(DType type) {
  constexpr DType kTypes[] = {DType::f32,  DType::f16, DType::bf16, DType::e4m3,
                              DType::e5m2, DType::s32, DType::s8,   DType::u8};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

Expression convert(DType type, const Expression& x) { return {EpilogueOp::convert, {x}, type}; }

namespace {

using Inputs = std::span<const Expression>;

template <EpilogueOp kOp>
Expression unary(Inputs x) {
  return {kOp, {x[0]}};
}
template <EpilogueOp kOp>
Expression binary(Inputs x) {
  return {kOp, {x[0], x[1]}};
}
template <EpilogueOp kOp>
Expression ternary(Inputs x) {
  return {kOp, {x[0], x[1], x[2]}};
}

Expression maximum(const Expression& x, const Expression& y) { return {EpilogueOp::maximum, {x, y}}; }
Expression minimum(const Expression& x, const Expression& y) { return {EpilogueOp::minimum, {x, y}}; }
Expression exponential(const Expression& x) { return {EpilogueOp::exp, {x}}; }
Expression hyperbolic_tangent(const Expression& x) { return {EpilogueOp::tanh, {x}}; }
Expression choose(const Expression& condition, const Expression& x, const Expression& y) {
  return {EpilogueOp::where, {condition, x, y}};
}

Expression logistic(const Expression& x) { return {EpilogueOp::logistic, {x}}; }
/// log(1 + e^x) without overflow.
Expression softened(const Expression& x) {
  const Expression magnitude(EpilogueOp::absolute, {x});
  return maximum(x, 0.0) + Expression(EpilogueOp::log1p, {exponential(-magnitude)});
}
/// gelu_tanh is x/2 * (1 + tanh(u)) with u = sqrt(2/pi) * (x + 0.044715 x^3), from Hendrycks and Gimpel,
/// arXiv:1606.08415. (1 + tanh(u))/2 is the logistic function of 2u, which takes fewer instructions and, for negative
/// u, has no cancellation.
constexpr double kGeluScale = 0.79788456080286535588;  // sqrt(2/pi)
constexpr double kGeluCubic = 0.044715;
Expression gelu_tanh_factor(const Expression& x) {
  return logistic(x * (2.0 * kGeluScale + 2.0 * kGeluScale * kGeluCubic * (x * x)));
}
Expression error_function(const Expression& x) { return {EpilogueOp::erf, {x * (1.0 / std::numbers::sqrt2)}}; }

Expression rectified(const Expression& x) { return maximum(x, 0.0); }
Expression sigmoid_weighted(const Expression& x) { return x * logistic(x); }
Expression gelu_of_erf(const Expression& x) { return 0.5 * x * (1.0 + error_function(x)); }
Expression gelu_of_tanh(const Expression& x) { return x * gelu_tanh_factor(x); }

/// Gated linear units, Shazeer, arXiv:2002.05202: even columns hold the gate, odd columns the gated value.
template <Expression (*kGate)(const Expression& x)>
Expression gated(Inputs x) {
  return kGate(Expression(EpilogueOp::even, {x[0]})) * Expression(EpilogueOp::odd, {x[0]});
}

const NamedFunction kFunctions[] = {
    {"fma", 3, ternary<EpilogueOp::fma>, "x*y + z, rounded once"},
    {"min", 2, binary<EpilogueOp::minimum>, "the lesser; NaN if either is NaN"},
    {"max", 2, binary<EpilogueOp::maximum>, "the greater; NaN if either is NaN"},
    {"abs", 1, unary<EpilogueOp::absolute>, "|x|"},
    {"neg", 1, unary<EpilogueOp::negate>, "-x"},
    {"sqrt", 1, unary<EpilogueOp::square_root>, "square root"},
    {"rsqrt", 1, unary<EpilogueOp::reciprocal_square_root>, "1/sqrt(x)"},
    {"reciprocal", 1, unary<EpilogueOp::reciprocal>, "1/x"},
    {"exp", 1, unary<EpilogueOp::exp>, "e^x"},
    {"log", 1, unary<EpilogueOp::log>, "natural logarithm"},
    {"log1p", 1, unary<EpilogueOp::log1p>, "log(1+x)"},
    {"pow", 2, binary<EpilogueOp::power>, "x^y"},
    {"floor", 1, unary<EpilogueOp::floor>, "largest integer not above x"},
    {"round", 1, unary<EpilogueOp::round>, "nearest integer, halves to even"},
    {"where", 3, ternary<EpilogueOp::where>, "y where x is not 0, else z"},
    {"clamp", 3, [](Inputs x) { return minimum(maximum(x[0], x[1]), x[2]); }, "min(max(x, y), z)"},
    {"erf", 1, unary<EpilogueOp::erf>, "error function"},
    {"tanh", 1, unary<EpilogueOp::tanh>, "hyperbolic tangent"},
    {"square", 1, [](Inputs x) { return x[0] * x[0]; }, "x*x"},
    {"relu", 1, [](Inputs x) { return rectified(x[0]); }, "max(x, 0)"},
    {"leaky_relu", 2, [](Inputs x) { return maximum(x[0], 0.0) + x[1] * minimum(x[0], 0.0); },
     "max(x, 0) + y*min(x, 0)"},
    {"sigmoid", 1, unary<EpilogueOp::logistic>, "1/(1 + exp(-x))"},
    {"silu", 1, [](Inputs x) { return sigmoid_weighted(x[0]); }, "x*sigmoid(x)"},
    {"hardswish", 1, [](Inputs x) { return x[0] * minimum(maximum(x[0] + 3.0, 0.0), 6.0) / 6.0; },
     "x*min(max(x + 3, 0), 6)/6"},
    {"gelu", 1, [](Inputs x) { return gelu_of_erf(x[0]); }, "x/2*(1 + erf(x/sqrt(2)))"},
    {"gelu_tanh", 1, [](Inputs x) { return gelu_of_tanh(x[0]); },
     "x*sigmoid(2*u), which is x/2*(1 + tanh(u)), u = sqrt(2/pi)*(x + 0.044715*x^3)"},
    {"softplus", 1, [](Inputs x) { return softened(x[0]); }, "log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|))"},
    {"mish", 1, [](Inputs x) { return x[0] * hyperbolic_tangent(softened(x[0])); }, "x*tanh(softplus(x))"},
    {"relu_gradient", 1, [](Inputs x) { return 0.0 < x[0]; }, "1 where x > 0, else 0"},
    {"leaky_relu_gradient", 2, [](Inputs x) { return choose(0.0 < x[0], 1.0, x[1]); }, "1 where x > 0, else y"},
    {"tanh_gradient", 1,
     [](Inputs x) {
       const Expression t = hyperbolic_tangent(x[0]);
       return 1.0 - t * t;
     },
     "1 - tanh(x)^2"},
    {"sigmoid_gradient", 1,
     [](Inputs x) {
       const Expression s = logistic(x[0]);
       return s * (1.0 - s);
     },
     "s*(1 - s), s = sigmoid(x)"},
    {"silu_gradient", 1,
     [](Inputs x) {
       const Expression s = logistic(x[0]);
       return s * (1.0 + x[0] * (1.0 - s));
     },
     "s*(1 + x*(1 - s)), s = sigmoid(x)"},
    {"hardswish_gradient", 1,
     [](Inputs x) { return choose(x[0] < -3.0, 0.0, choose(x[0] < 3.0, (2.0 * x[0] + 3.0) / 6.0, 1.0)); },
     "0 below -3, (2x + 3)/6 below 3, else 1"},
    {"gelu_gradient", 1,
     [](Inputs x) {
       const double density = 0.5 * kGeluScale;  // 1/sqrt(2 pi)
       return 0.5 * (1.0 + error_function(x[0])) + x[0] * (density * exponential(-0.5 * (x[0] * x[0])));
     },
     "(1 + erf(x/sqrt(2)))/2 + x*exp(-x^2/2)/sqrt(2 pi)"},
    {"gelu_tanh_gradient", 1,
     [](Inputs x) {
       const Expression s = gelu_tanh_factor(x[0]);
       const Expression near = minimum(maximum(x[0], -16.0), 16.0);  // s*(1 - s) is 0 beyond, and x*x may overflow
       const Expression slope = 2.0 * kGeluScale + 6.0 * kGeluScale * kGeluCubic * (near * near);
       return s + near * (s * (1.0 - s)) * slope;
     },
     "of gelu_tanh"},
    {"softplus_gradient", 1, unary<EpilogueOp::logistic>, "sigmoid(x)"},
    {"even", 1, unary<EpilogueOp::even>, "x at column 2j of A*B, for column j of D"},
    {"odd", 1, unary<EpilogueOp::odd>, "x at column 2j+1"},
    {"glu", 1, gated<logistic>, "sigmoid(even(x)) * odd(x)"},
    {"reglu", 1, gated<rectified>, "relu(even(x)) * odd(x)"},
    {"swiglu", 1, gated<sigmoid_weighted>, "silu(even(x)) * odd(x)"},
    {"geglu", 1, gated<gelu_of_erf>, "gelu(even(x)) * odd(x)"},
    {"geglu_tanh", 1, gated<gelu_of_tanh>, "gelu_tanh(even(x)) * odd(x)"},
};

}  // namespace

std::span<const NamedFunction> functions() { return kFunctions; }

std::span<const NamedReduction> reductions() {
  constexpr auto kIdentity = [](const Expression& x) { return x; };
  static constexpr NamedReduction kReductions[] = {
      {"sum", Reduction::sum, kIdentity, "the sum"},
      {"max", Reduction::maximum, kIdentity, "the largest"},
      {"min", Reduction::minimum, kIdentity, "the smallest"},
      {"absmax", Reduction::maximum, [](const Expression& x) { return Expression(EpilogueOp::absolute, {x}); },
       "the largest |x|"},
      {"sum_of_squares", Reduction::sum, [](const Expression& x) { return x * x; }, "the sum of x*x"},
  };
  return kReductions;
}

Expression call(std::string_view function, std::initializer_list<Expression> inputs) {
  const auto found = std::ranges::find(kFunctions, function, &NamedFunction::name);
  if (found == std::end(kFunctions)) throw InvalidArgument(fmt::format("unknown function '{}'", printable(function)));
  if (static_cast<int>(inputs.size()) != found->arity) {
    throw InvalidArgument(fmt::format("{} takes {} inputs, got {}", function, found->arity, inputs.size()));
  }
  return found->apply({inputs.begin(), inputs.size()});
}

Result<Epilogue> make_epilogue(std::string name, DType compute, const Expression& d,
                               const std::vector<NamedOutput>& outputs) {
  Epilogue epilogue{std::move(name), compute, {}};
  EpilogueGraph graph(epilogue.nodes);
  epilogue.d = graph.add(d);
  for (const NamedOutput& output : outputs)
    epilogue.outputs.push_back({output.name, graph.add(output.value), output.reduction, output.broadcast});
  if (epilogue.d + 1 == static_cast<int>(epilogue.nodes.size())) epilogue.d = -1;
  if (const Support valid = validate(epilogue); !valid) return valid.refusal();
  return epilogue;
}

}  // namespace tilewright::op
