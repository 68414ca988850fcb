#include "tilewright/op/epilogue.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tilewright/base/text.hpp"

namespace tilewright::op {
namespace {

struct OpRow {
  EpilogueOp op;
  int arity;
  std::string_view name;
  bool needs_float;
};

constexpr std::array<OpRow, 14> kOps{{
    {EpilogueOp::accumulator, 0, "acc", false},
    {EpilogueOp::source, 0, "c", false},
    {EpilogueOp::scalar, 0, "scalar", false},
    {EpilogueOp::constant, 0, "constant", false},
    {EpilogueOp::add, 2, "add", false},
    {EpilogueOp::subtract, 2, "sub", false},
    {EpilogueOp::multiply, 2, "mul", false},
    {EpilogueOp::divide, 2, "div", true},
    {EpilogueOp::maximum, 2, "max", false},
    {EpilogueOp::minimum, 2, "min", false},
    {EpilogueOp::negate, 1, "neg", false},
    {EpilogueOp::exp, 1, "exp", true},
    {EpilogueOp::erf, 1, "erf", true},
    {EpilogueOp::tanh, 1, "tanh", true},
}};

const OpRow& row(EpilogueOp op) {
  const auto index = static_cast<std::size_t>(op);
  TILEWRIGHT_CHECK(index < kOps.size() && kOps[index].op == op, "epilogue operation {} has no row", index);
  return kOps[index];
}

constexpr std::array<std::pair<Activation, std::string_view>, 8> kActivations{{
    {Activation::identity, "identity"},
    {Activation::relu, "relu"},
    {Activation::leaky_relu, "leaky_relu"},
    {Activation::tanh, "tanh"},
    {Activation::sigmoid, "sigmoid"},
    {Activation::silu, "silu"},
    {Activation::hardswish, "hardswish"},
    {Activation::gelu, "gelu"},
}};

// Appends nodes and hands back their index, so that a formula reads as a formula.
class GraphBuilder {
 public:
  GraphBuilder(std::string name, DType compute) { graph_ = Epilogue{std::move(name), compute, {}}; }

  int leaf(EpilogueOp op) { return append({op, {-1, -1}, 0.0, {}}); }
  int scalar(std::string label, double value = 0.0) {
    return append({EpilogueOp::scalar, {-1, -1}, value, std::move(label)});
  }
  int constant(double value) { return append({EpilogueOp::constant, {-1, -1}, value, {}}); }
  int apply(EpilogueOp op, int x, int y = -1) { return append({op, {x, y}, 0.0, {}}); }
  int add(int x, int y) { return apply(EpilogueOp::add, x, y); }
  int multiply(int x, int y) { return apply(EpilogueOp::multiply, x, y); }
  int divide(int x, int y) { return apply(EpilogueOp::divide, x, y); }
  int maximum(int x, int y) { return apply(EpilogueOp::maximum, x, y); }
  int minimum(int x, int y) { return apply(EpilogueOp::minimum, x, y); }
  /// alpha * accumulator + beta * C
  int linear_combination() {
    const int alpha = scalar("alpha");
    const int product = multiply(alpha, leaf(EpilogueOp::accumulator));
    const int beta = scalar("beta");
    return add(product, multiply(beta, leaf(EpilogueOp::source)));
  }
  int sigmoid(int x) {
    const int one = constant(1.0);
    return divide(one, add(one, apply(EpilogueOp::exp, apply(EpilogueOp::negate, x))));
  }
  Epilogue take() && { return std::move(graph_); }

 private:
  int append(EpilogueNode node) {
    graph_.nodes.push_back(std::move(node));
    return static_cast<int>(graph_.nodes.size()) - 1;
  }

  Epilogue graph_;
};

std::string print_node(const Epilogue& epilogue, int index) {
  const EpilogueNode& node = epilogue.nodes[static_cast<std::size_t>(index)];
  if (node.op == EpilogueOp::scalar) return fmt::format("${}", node.label);
  if (node.op == EpilogueOp::constant) return fmt::format("{:a}", node.value);
  const std::string_view function = row(node.op).name;
  if (arity(node.op) == 0) return std::string(function);
  const std::string first = print_node(epilogue, node.inputs[0]);
  if (arity(node.op) == 1) return fmt::format("{}({})", function, first);
  return fmt::format("{}({},{})", function, first, print_node(epilogue, node.inputs[1]));
}

// Of the last node's tree; saturates just past the limit.
std::int64_t signature_terms(const Epilogue& epilogue) {
  std::vector<std::int64_t> terms;
  terms.reserve(epilogue.nodes.size());
  for (const EpilogueNode& node : epilogue.nodes) {
    std::int64_t sum = 1;
    for (int side = 0; side < arity(node.op); ++side) {
      sum += terms[static_cast<std::size_t>(node.inputs[static_cast<std::size_t>(side)])];
    }
    terms.push_back(std::min(sum, kMaxSignatureTerms + 1));
  }
  return terms.back();
}

}  // namespace

double apply(EpilogueOp op, double x, double y) {
  switch (op) {
    case EpilogueOp::add:
      return x + y;
    case EpilogueOp::subtract:
      return x - y;
    case EpilogueOp::multiply:
      return x * y;
    case EpilogueOp::divide:
      return x / y;
    case EpilogueOp::maximum:
      return std::isnan(x) || std::isnan(y) ? std::numeric_limits<double>::quiet_NaN() : std::max(x, y);
    case EpilogueOp::minimum:
      return std::isnan(x) || std::isnan(y) ? std::numeric_limits<double>::quiet_NaN() : std::min(x, y);
    case EpilogueOp::negate:
      return -x;
    case EpilogueOp::exp:
      return std::exp(x);
    case EpilogueOp::erf:
      return std::erf(x);
    case EpilogueOp::tanh:
      return std::tanh(x);
    default:
      TILEWRIGHT_CHECK(false, "'{}' is not a function", row(op).name);
  }
}

int arity(EpilogueOp op) { return row(op).arity; }
std::string_view name(EpilogueOp op) { return row(op).name; }

bool Epilogue::reads_source() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const EpilogueNode& n) { return n.op == EpilogueOp::source; });
}

std::vector<std::string> Epilogue::scalars() const {
  std::vector<std::string> labels;
  for (const EpilogueNode& node : nodes) {
    if (node.op == EpilogueOp::scalar && std::find(labels.begin(), labels.end(), node.label) == labels.end()) {
      labels.push_back(node.label);
    }
  }
  return labels;
}

std::optional<std::string> Epilogue::gate(EpilogueOp leaf) const {
  std::optional<std::string> found;
  const auto node = [&](int index) -> const EpilogueNode& { return nodes[static_cast<std::size_t>(index)]; };
  for (const EpilogueNode& user : nodes) {
    for (int side = 0; side < arity(user.op); ++side) {
      const auto slot = static_cast<std::size_t>(side);
      if (node(user.inputs[slot]).op != leaf) continue;
      if (user.op != EpilogueOp::multiply) return std::nullopt;
      const EpilogueNode& factor = node(user.inputs[1 - slot]);
      if (factor.op != EpilogueOp::scalar || (found && *found != factor.label)) return std::nullopt;
      found = factor.label;
    }
  }
  return found;
}

Support validate(const Epilogue& epilogue) {
  if (!is_identifier(epilogue.name))
    return refuse("an epilogue's name must be an identifier, got '{}'", printable(epilogue.name));
  if (epilogue.nodes.empty()) return refuse("epilogue '{}' has no nodes", epilogue.name);
  if (epilogue.compute != DType::f32 && epilogue.compute != DType::f64 && epilogue.compute != DType::s32) {
    return refuse("an epilogue computes in f32, f64 or s32, got {}", name(epilogue.compute));
  }
  for (std::size_t i = 0; i < epilogue.nodes.size(); ++i) {
    const EpilogueNode& node = epilogue.nodes[i];
    for (int side = 0; side < arity(node.op); ++side) {
      const int input = node.inputs[static_cast<std::size_t>(side)];
      if (input < 0 || input >= static_cast<int>(i)) {
        return refuse("epilogue node {} ({}) takes node {}, which is not an earlier one", i, name(node.op), input);
      }
    }
    if (node.op == EpilogueOp::scalar && !is_identifier(node.label)) {
      return refuse("epilogue node {} is a scalar whose name must be an identifier, got '{}'", i,
                    printable(node.label));
    }
    if (node.op == EpilogueOp::constant && !std::isfinite(node.value)) {
      return refuse("epilogue node {} is the constant {}, which is not finite", i, node.value);
    }
    if (epilogue.compute == DType::s32 && row(node.op).needs_float) {
      return refuse("epilogue node {} ({}) needs a float compute type, got s32", i, name(node.op));
    }
    if (epilogue.compute == DType::s32 && node.op == EpilogueOp::constant && node.value != std::trunc(node.value)) {
      return refuse("epilogue node {} is the constant {}, not an integer as compute type s32 needs", i, node.value);
    }
  }
  if (signature_terms(epilogue) > kMaxSignatureTerms) {
    return refuse("epilogue '{}' of {} nodes has more than {} terms when nodes used twice are written twice",
                  epilogue.name, epilogue.nodes.size(), kMaxSignatureTerms);
  }
  return {};
}

std::string signature(const Epilogue& epilogue) {
  return fmt::format("{} {} {}", epilogue.name, name(epilogue.compute),
                     print_node(epilogue, static_cast<int>(epilogue.nodes.size()) - 1));
}

bool same_code(const Epilogue& x, const Epilogue& y) {
  const auto same_node = [](const EpilogueNode& u, const EpilogueNode& v) {
    return u.op == v.op && u.inputs == v.inputs && u.label == v.label &&
           (u.op != EpilogueOp::constant || u.value == v.value);
  };
  return x.name == y.name && x.compute == y.compute &&
         std::equal(x.nodes.begin(), x.nodes.end(), y.nodes.begin(), y.nodes.end(), same_node);
}

double scalar_value(const Epilogue& epilogue, std::string_view label, double alpha, double beta) {
  if (label == "alpha") return alpha;
  if (label == "beta") return beta;
  for (const EpilogueNode& node : epilogue.nodes) {
    if (node.op == EpilogueOp::scalar && node.label == label) return node.value;
  }
  TILEWRIGHT_CHECK(false, "epilogue '{}' has no scalar '{}'", epilogue.name, label);
}

double evaluate(const Epilogue& epilogue, double accumulator, double source, double alpha, double beta) {
  const auto is_off = [&](EpilogueOp leaf) {
    const std::optional<std::string> gate = epilogue.gate(leaf);
    return gate && scalar_value(epilogue, *gate, alpha, beta) == 0.0;
  };
  std::vector<double> values;
  values.reserve(epilogue.nodes.size());
  for (const EpilogueNode& node : epilogue.nodes) {
    const auto input = [&](std::size_t side) { return values[static_cast<std::size_t>(node.inputs[side])]; };
    switch (node.op) {
      case EpilogueOp::accumulator:
        values.push_back(is_off(EpilogueOp::accumulator) ? 0.0 : accumulator);
        break;
      case EpilogueOp::source:
        values.push_back(is_off(EpilogueOp::source) ? 0.0 : source);
        break;
      case EpilogueOp::scalar:
        values.push_back(scalar_value(epilogue, node.label, alpha, beta));
        break;
      case EpilogueOp::constant:
        values.push_back(node.value);
        break;
      default:
        values.push_back(apply(node.op, input(0), arity(node.op) == 2 ? input(1) : 0.0));
    }
  }
  return values.back();
}

Epilogue linear_combination(DType compute) {
  GraphBuilder graph("linear_combination", compute);
  graph.linear_combination();
  return std::move(graph).take();
}

Epilogue linear_combination_clamp(DType output, DType compute) {
  GraphBuilder graph("linear_combination_clamp", compute);
  const int x = graph.linear_combination();
  // The range of s32 is not clamped to in f32, which cannot hold 2^31 - 1: the conversion saturates. So does that to
  // 8-bit floats.
  if (output == DType::s8 || output == DType::u8) {
    const bool is_signed = output == DType::s8;
    const int low = graph.constant(is_signed ? -128.0 : 0.0);
    const int high = graph.constant(is_signed ? 127.0 : 255.0);
    graph.minimum(graph.maximum(x, low), high);
  } else if (output == DType::f16) {
    graph.minimum(graph.maximum(x, graph.constant(-65504.0)), graph.constant(65504.0));
  }
  return std::move(graph).take();
}

std::string_view name(Activation activation) { return kActivations[static_cast<std::size_t>(activation)].second; }

std::optional<Activation> parse_activation(std::string_view text) {
  for (const auto& [activation, label] : kActivations) {
    if (text == label) return activation;
  }
  return std::nullopt;
}

Epilogue linear_combination_generic(Activation activation, DType compute, double slope) {
  GraphBuilder graph(fmt::format("linear_combination_{}", name(activation)), compute);
  const int x = graph.linear_combination();
  switch (activation) {
    case Activation::identity:
      break;
    case Activation::relu:
      graph.maximum(x, graph.constant(0.0));
      break;
    case Activation::leaky_relu: {
      const int zero = graph.constant(0.0);
      graph.add(graph.maximum(x, zero), graph.multiply(graph.scalar("leaky_alpha", slope), graph.minimum(x, zero)));
      break;
    }
    case Activation::tanh:
      graph.apply(EpilogueOp::tanh, x);
      break;
    case Activation::sigmoid:
      graph.sigmoid(x);
      break;
    case Activation::silu:
      graph.multiply(x, graph.sigmoid(x));
      break;
    case Activation::hardswish: {
      const int six = graph.constant(6.0);
      const int gate = graph.minimum(graph.maximum(graph.add(x, graph.constant(3.0)), graph.constant(0.0)), six);
      graph.divide(graph.multiply(x, gate), six);
      break;
    }
    case Activation::gelu: {
      const int erf = graph.apply(EpilogueOp::erf, graph.multiply(x, graph.constant(1.0 / std::numbers::sqrt2)));
      graph.multiply(graph.multiply(graph.constant(0.5), x), graph.add(graph.constant(1.0), erf));
      break;
    }
  }
  return std::move(graph).take();
}

Result<Epilogue> named_epilogue(std::string_view text, DType output, DType compute) {
  constexpr std::string_view kPrefix = "linear_combination";
  std::string_view rest = text;
  if (rest.starts_with(kPrefix)) rest.remove_prefix(kPrefix.size());
  if (rest.starts_with("_")) rest.remove_prefix(1);
  Epilogue epilogue;
  if (rest.empty() && !text.empty()) {
    epilogue = linear_combination(compute);
  } else if (rest == "clamp") {
    epilogue = linear_combination_clamp(output, compute);
  } else if (const std::optional<Activation> activation = parse_activation(rest)) {
    epilogue = linear_combination_generic(*activation, compute);
  } else {
    return refuse(
        "unknown epilogue '{}': known are linear_combination, clamp, relu, leaky_relu, tanh, sigmoid, silu, "
        "hardswish, gelu, identity",
        text);
  }
  if (const Support valid = validate(epilogue); !valid) return refuse("{}", valid.reason());
  return epilogue;
}

}  // namespace tilewright::op
