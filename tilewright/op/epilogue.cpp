#include "tilewright/op/epilogue.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tilewright/base/text.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::op {
namespace {

struct OpRow {
  EpilogueOp op;
  int arity;
  std::string_view name;
  bool is_integral;
};

constexpr std::array<OpRow, 35> kOps{{
    {EpilogueOp::accumulator, 0, "acc", true},
    {EpilogueOp::source, 0, "c", true},
    {EpilogueOp::scalar, 0, "scalar", true},
    {EpilogueOp::constant, 0, "constant", true},
    {EpilogueOp::tensor, 0, "tensor", true},
    {EpilogueOp::row_index, 0, "row_index", true},
    {EpilogueOp::column_index, 0, "column_index", true},
    {EpilogueOp::add, 2, "add", true},
    {EpilogueOp::subtract, 2, "sub", true},
    {EpilogueOp::multiply, 2, "mul", true},
    {EpilogueOp::divide, 2, "div", false},
    {EpilogueOp::maximum, 2, "max", true},
    {EpilogueOp::minimum, 2, "min", true},
    {EpilogueOp::power, 2, "pow", false},
    {EpilogueOp::less, 2, "less", true},
    {EpilogueOp::less_equal, 2, "less_equal", true},
    {EpilogueOp::equal, 2, "equal", true},
    {EpilogueOp::negate, 1, "neg", true},
    {EpilogueOp::absolute, 1, "abs", true},
    {EpilogueOp::reciprocal, 1, "rcp", false},
    {EpilogueOp::square_root, 1, "sqrt", false},
    {EpilogueOp::reciprocal_square_root, 1, "rsqrt", false},
    {EpilogueOp::exp, 1, "exp", false},
    {EpilogueOp::log, 1, "log", false},
    {EpilogueOp::log1p, 1, "log1p", false},
    {EpilogueOp::erf, 1, "erf", false},
    {EpilogueOp::tanh, 1, "tanh", false},
    {EpilogueOp::logistic, 1, "logistic", false},
    {EpilogueOp::floor, 1, "floor", false},
    {EpilogueOp::round, 1, "round", false},
    {EpilogueOp::convert, 1, "convert", false},
    {EpilogueOp::fma, 3, "fma", true},
    {EpilogueOp::where, 3, "where", true},
    {EpilogueOp::even, 1, "even", true},
    {EpilogueOp::odd, 1, "odd", true},
}};

const OpRow& row(EpilogueOp op) {
  const auto index = static_cast<std::size_t>(op);
  TILEWRIGHT_CHECK(index < kOps.size() && kOps[index].op == op, "epilogue operation {} has no row", index);
  return kOps[index];
}

std::string print_node(const Epilogue& epilogue, int index) {
  const EpilogueNode& node = epilogue.nodes[static_cast<std::size_t>(index)];
  if (node.op == EpilogueOp::scalar) return fmt::format("${}", node.label);
  if (node.op == EpilogueOp::constant) return fmt::format("{:a}", node.value);
  if (node.op == EpilogueOp::tensor) return fmt::format("{}({})", name(node.broadcast), node.label);
  std::string text{row(node.op).name};
  if (arity(node.op) == 0) return text;
  text += '(';
  if (node.op == EpilogueOp::convert) text += fmt::format("{},", name(node.type));
  for (int side = 0; side < arity(node.op); ++side) {
    if (side != 0) text += ',';
    text += print_node(epilogue, node.inputs[static_cast<std::size_t>(side)]);
  }
  return text + ')';
}

// The number of terms in the signature's text, clamped to kMaxSignatureTerms + 1 per node.
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
  std::int64_t sum = terms[static_cast<std::size_t>(epilogue.node_of_d())];
  for (const EpilogueOutput& output : epilogue.outputs) sum += terms[static_cast<std::size_t>(output.node)];
  return sum;
}

constexpr const char* kFloatOutput = "an output of f32 has the compute type f32";

Support check_node(const Epilogue& epilogue, int index) {
  const EpilogueNode& node = epilogue.nodes[static_cast<std::size_t>(index)];
  for (int side = 0; side < arity(node.op); ++side) {
    const int input = node.inputs[static_cast<std::size_t>(side)];
    if (input < 0 || input >= index) {
      return refuse("epilogue node {} ({}) reads node {}, which is not an earlier node", index, name(node.op), input);
    }
  }
  const bool has_label = node.op == EpilogueOp::scalar || node.op == EpilogueOp::tensor;
  if (has_label && !is_identifier(node.label)) {
    return refuse("epilogue node {} is a {} whose name must be an identifier, got '{}'", index, name(node.op),
                  printable(node.label));
  }
  if (node.op == EpilogueOp::constant && !std::isfinite(node.value)) {
    return refuse("epilogue node {} is the constant {}, which is not finite", index, node.value);
  }
  if (node.op == EpilogueOp::convert && !is_convertible(node.type))
    return refuse("epilogue node {} cannot convert to {}", index, name(node.type)).as(RefusalCode::types);
  if (epilogue.compute == DType::s32 && !is_integral(node.op))
    return refuse("epilogue node {} ({}) needs a float compute type, got s32: {}", index, name(node.op), kFloatOutput);
  if (node.op != EpilogueOp::constant) return {};
  if (epilogue.compute == DType::s32 && node.value != std::trunc(node.value)) {
    return refuse("epilogue node {} is the constant {}, but compute type s32 needs an integer: {}", index, node.value,
                  kFloatOutput);
  }
  const double rounded = round_to(epilogue.compute, node.value);
  const bool saturates = epilogue.compute == DType::s32 && rounded != node.value;
  if (saturates || !std::isfinite(rounded)) {
    return refuse("epilogue node {} is the constant {}, beyond the range of compute type {}", index, node.value,
                  name(epilogue.compute));
  }
  return {};
}

// Names must be unique, since tensors and scalars are passed by name.
Support check_names(const Epilogue& epilogue) {
  const std::vector<std::string> scalars = epilogue.scalars();
  const std::vector<const EpilogueNode*> tensors = epilogue.tensors();
  for (const auto& [what, count, limit] : {std::tuple{"scalars", std::ssize(scalars), kMaxEpilogueScalars},
                                           {"tensors", std::ssize(tensors), kMaxEpilogueTensors},
                                           {"outputs", std::ssize(epilogue.outputs), kMaxEpilogueTensors}}) {
    if (count > limit) return refuse("epilogue '{}' has {} {}, more than {}", epilogue.name, count, what, limit);
  }
  std::set<std::string_view> taken{"A", "B", "C", "D", "acc"};
  const auto take = [&](std::string_view label) {
    const bool is_new = taken.insert(label).second;
    return is_new ? Support{} : refuse("epilogue '{}' uses the name '{}' twice", epilogue.name, label);
  };
  for (const std::string& label : scalars) {
    if (const Support support = take(label); !support) return support;
  }
  for (const EpilogueNode* tensor : tensors) {
    if (const Support support = take(tensor->label); !support) return support;
  }
  for (const EpilogueNode& node : epilogue.nodes) {
    if (node.op != EpilogueOp::tensor) continue;
    const auto first = std::ranges::find(tensors, node.label, &EpilogueNode::label);
    if ((*first)->broadcast != node.broadcast) {
      return refuse("epilogue '{}' reads '{}' as {} and as {}", epilogue.name, node.label, name((*first)->broadcast),
                    name(node.broadcast));
    }
  }
  for (const EpilogueOutput& output : epilogue.outputs) {
    if (!is_identifier(output.label))
      return refuse("the name of an epilogue output must be an identifier, got '{}'", printable(output.label));
    if (const Support support = take(output.label); !support) return support;
  }
  return {};
}

Support check_output(const Epilogue& epilogue, const EpilogueOutput& output) {
  const auto count = static_cast<int>(epilogue.nodes.size());
  if (output.node < 0 || output.node >= count) {
    return refuse("epilogue '{}' stores node {} to '{}', of {} nodes", epilogue.name, output.node, output.label, count);
  }
  if ((output.reduction == Reduction::none) != (output.broadcast == kFull)) {
    return refuse("epilogue '{}' stores '{}' as {} with reduction {}: an output is full exactly if it is not reduced",
                  epilogue.name, output.label, name(output.broadcast), name(output.reduction));
  }
  return {};
}

// Checks a graph that pairs columns; accepts all others.
Support check_pairs(const Epilogue& epilogue) {
  if (!epilogue.is_gated()) return {};
  if (epilogue.reads_source())
    return refuse("epilogue '{}' pairs columns and reads C, which has only one column per pair", epilogue.name);
  const std::vector<bool> varies = epilogue.varies_by_column();
  if (varies[static_cast<std::size_t>(epilogue.node_of_d())]) {
    return refuse(
        "epilogue '{}' pairs columns, but its D differs between the two columns of a pair: use even() or odd()",
        epilogue.name);
  }
  for (const EpilogueOutput& output : epilogue.outputs) {
    if (output.reduction != Reduction::none)
      return refuse("epilogue '{}' pairs columns and reduces to '{}': these cannot be combined", epilogue.name,
                    output.label);
    if (!varies[static_cast<std::size_t>(output.node)]) {
      return refuse("epilogue '{}' stores one value per pair of columns to '{}': only D can have such values",
                    epilogue.name, output.label);
    }
  }
  return {};
}

double not_a_number() { return std::numeric_limits<double>::quiet_NaN(); }

}  // namespace

double apply(EpilogueOp op, double x, double y, double z) {
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
      return std::isnan(x) || std::isnan(y) ? not_a_number() : std::max(x, y);
    case EpilogueOp::minimum:
      return std::isnan(x) || std::isnan(y) ? not_a_number() : std::min(x, y);
    case EpilogueOp::power:
      return std::pow(x, y);
    case EpilogueOp::less:
      return x < y ? 1.0 : 0.0;
    case EpilogueOp::less_equal:
      return x <= y ? 1.0 : 0.0;
    case EpilogueOp::equal:
      return x == y ? 1.0 : 0.0;
    case EpilogueOp::negate:
      return -x;
    case EpilogueOp::absolute:
      return std::fabs(x);
    case EpilogueOp::reciprocal:
      return 1.0 / x;
    case EpilogueOp::square_root:
      return std::sqrt(x);
    case EpilogueOp::reciprocal_square_root:
      return 1.0 / std::sqrt(x);
    case EpilogueOp::exp:
      return std::exp(x);
    case EpilogueOp::log:
      return std::log(x);
    case EpilogueOp::log1p:
      return std::log1p(x);
    case EpilogueOp::erf:
      return std::erf(x);
    case EpilogueOp::tanh:
      return std::tanh(x);
    case EpilogueOp::logistic:
      return 1.0 / (1.0 + std::exp(-x));
    case EpilogueOp::floor:
      return std::floor(x);
    case EpilogueOp::round:
      return std::nearbyint(x);
    case EpilogueOp::fma:
      return std::fma(x, y, z);
    case EpilogueOp::where:
      return x != 0.0 ? y : z;
    case EpilogueOp::accumulator:
    case EpilogueOp::source:
    case EpilogueOp::scalar:
    case EpilogueOp::constant:
    case EpilogueOp::tensor:
    case EpilogueOp::row_index:
    case EpilogueOp::column_index:
    case EpilogueOp::convert:
    case EpilogueOp::even:
    case EpilogueOp::odd:
      break;
  }
  TILEWRIGHT_CHECK(false, "'{}' is not a function of numbers alone", row(op).name);
}

int arity(EpilogueOp op) { return row(op).arity; }
std::string_view name(EpilogueOp op) { return row(op).name; }
bool is_integral(EpilogueOp op) { return row(op).is_integral; }

std::string_view name(const Broadcast& broadcast) {
  if (broadcast == kFull) return "full";
  if (broadcast == kRowVector) return "row";
  return broadcast == kColumnVector ? "column" : "single";
}

std::string_view name(Reduction reduction) {
  constexpr std::array<std::string_view, 4> kNames{"none", "sum", "max", "min"};
  return kNames[static_cast<std::size_t>(reduction)];
}

double identity(Reduction reduction, DType compute) {
  if (reduction == Reduction::sum) return 0.0;
  const double end = compute == DType::s32 ? -0x1p31 : -std::numeric_limits<double>::infinity();
  if (reduction == Reduction::maximum) return end;
  return compute == DType::s32 ? 0x1p31 - 1.0 : -end;
}

double combine(Reduction reduction, double x, double y) {
  if (reduction == Reduction::sum) return x + y;
  return apply(reduction == Reduction::maximum ? EpilogueOp::maximum : EpilogueOp::minimum, x, y);
}

bool Epilogue::reads_source() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const EpilogueNode& n) { return n.op == EpilogueOp::source; });
}

bool Epilogue::is_gated() const {
  return std::ranges::any_of(
      nodes, [](const EpilogueNode& node) { return node.op == EpilogueOp::even || node.op == EpilogueOp::odd; });
}

std::vector<bool> Epilogue::varies_by_column() const {
  std::vector<bool> varies;
  for (const EpilogueNode& node : nodes) {
    using enum EpilogueOp;
    bool varying = node.op == accumulator || node.op == source || node.op == column_index ||
                   (node.op == tensor && node.broadcast.along_n);
    const int inputs = node.op == even || node.op == odd ? 0 : arity(node.op);
    for (int side = 0; side < inputs; ++side)
      varying = varying || varies[static_cast<std::size_t>(node.inputs[static_cast<std::size_t>(side)])];
    varies.push_back(varying);
  }
  return varies;
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

std::vector<const EpilogueNode*> Epilogue::tensors() const {
  std::vector<const EpilogueNode*> found;
  for (const EpilogueNode& node : nodes) {
    if (node.op != EpilogueOp::tensor) continue;
    if (std::ranges::none_of(found, [&](const EpilogueNode* each) { return each->label == node.label; }))
      found.push_back(&node);
  }
  return found;
}

std::optional<std::string> Epilogue::gate(EpilogueOp leaf) const {
  std::optional<std::string> found;
  const auto is_stored = [&](int index) {
    return index == node_of_d() || std::ranges::find(outputs, index, &EpilogueOutput::node) != outputs.end();
  };
  const auto node = [&](int index) -> const EpilogueNode& { return nodes[static_cast<std::size_t>(index)]; };
  for (const EpilogueNode& user : nodes) {
    for (int side = 0; side < arity(user.op); ++side) {
      const auto slot = static_cast<std::size_t>(side);
      if (node(user.inputs[slot]).op != leaf) continue;
      if (user.op != EpilogueOp::multiply || is_stored(user.inputs[slot])) return std::nullopt;
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
  const auto count = static_cast<int>(epilogue.nodes.size());
  if (count == 0) return refuse("epilogue '{}' has no nodes", epilogue.name);
  if (count > kMaxEpilogueNodes)
    return refuse("epilogue '{}' has {} nodes, more than {}", epilogue.name, count, kMaxEpilogueNodes);
  if (epilogue.compute != DType::f32 && epilogue.compute != DType::f64 && epilogue.compute != DType::s32) {
    return refuse("an epilogue computes in f32, f64 or s32, got {}", name(epilogue.compute));
  }
  for (int i = 0; i < count; ++i) {
    if (const Support valid = check_node(epilogue, i); !valid) return valid;
  }
  if (epilogue.node_of_d() >= count)
    return refuse("epilogue '{}' stores node {} to D, of {} nodes", epilogue.name, epilogue.d, count);
  for (const EpilogueOutput& output : epilogue.outputs) {
    if (const Support valid = check_output(epilogue, output); !valid) return valid;
  }
  for (const auto& check : {check_names, check_pairs}) {
    if (const Support valid = check(epilogue); !valid) return valid;
  }
  if (signature_terms(epilogue) > kMaxSignatureTerms) {
    return refuse("epilogue '{}' of {} nodes has more than {} terms when every use of a node is expanded",
                  epilogue.name, epilogue.nodes.size(), kMaxSignatureTerms);
  }
  return {};
}

Epilogue transposed(const Epilogue& epilogue) {
  Epilogue result = epilogue;
  for (EpilogueOutput& output : result.outputs) std::swap(output.broadcast.along_m, output.broadcast.along_n);
  for (EpilogueNode& node : result.nodes) {
    std::swap(node.broadcast.along_m, node.broadcast.along_n);
    if (node.op == EpilogueOp::row_index) {
      node.op = EpilogueOp::column_index;
    } else if (node.op == EpilogueOp::column_index) {
      node.op = EpilogueOp::row_index;
    }
  }
  return result;
}

std::string signature(const Epilogue& epilogue) {
  std::string text =
      fmt::format("{} {} {}", epilogue.name, name(epilogue.compute), print_node(epilogue, epilogue.node_of_d()));
  for (const EpilogueOutput& output : epilogue.outputs) {
    const std::string node = print_node(epilogue, output.node);
    text += output.reduction == Reduction::none
                ? fmt::format("; {}={}", output.label, node)
                : fmt::format("; {}({})={}({})", name(output.broadcast), output.label, name(output.reduction), node);
  }
  return text;
}

bool same_code(const Epilogue& x, const Epilogue& y) {
  const auto same_node = [](const EpilogueNode& u, const EpilogueNode& v) {
    return u.op == v.op && u.inputs == v.inputs && u.label == v.label && u.broadcast == v.broadcast &&
           u.type == v.type && (u.op != EpilogueOp::constant || u.value == v.value);
  };
  return x.name == y.name && x.compute == y.compute && x.outputs == y.outputs && x.node_of_d() == y.node_of_d() &&
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

namespace {

/// Evaluates all nodes for one column, or for the two columns of a pair.
template <std::size_t kColumns>
std::array<std::vector<double>, kColumns> evaluate_columns(const Epilogue& epilogue,
                                                           const std::array<EpilogueElement, kColumns>& columns) {
  const auto gated = [&](EpilogueOp leaf, const EpilogueElement& element, double value) {
    const std::optional<std::string> gate = epilogue.gate(leaf);
    return gate && scalar_value(epilogue, *gate, element.alpha, element.beta) == 0.0 ? 0.0 : value;
  };
  const std::vector<const EpilogueNode*> tensors = epilogue.tensors();
  const auto number_of = [&](const std::string& label) {
    const auto found = std::ranges::find(tensors, label, &EpilogueNode::label);
    return static_cast<std::size_t>(found - tensors.begin());
  };
  std::array<std::vector<double>, kColumns> values;
  const auto value_of = [&](const EpilogueNode& node, std::size_t column) {
    const EpilogueElement& element = columns[column];
    const auto input = [&](int side, std::size_t at) {
      return side < arity(node.op) ? values[at][static_cast<std::size_t>(node.inputs[static_cast<std::size_t>(side)])]
                                   : 0.0;
    };
    switch (node.op) {
      case EpilogueOp::accumulator:
        return gated(node.op, element, element.accumulator);
      case EpilogueOp::source:
        return gated(node.op, element, element.source);
      case EpilogueOp::scalar:
        return scalar_value(epilogue, node.label, element.alpha, element.beta);
      case EpilogueOp::constant:
        return node.value;
      case EpilogueOp::tensor:
        return element.tensors.at(number_of(node.label));
      case EpilogueOp::row_index:
        return element.row;
      case EpilogueOp::column_index:
        return element.column;
      case EpilogueOp::convert:
        return round_to(node.type, input(0, column));
      case EpilogueOp::even:
        return input(0, 0);
      case EpilogueOp::odd:
        return input(0, kColumns - 1);
      default:
        return apply(node.op, input(0, column), input(1, column), input(2, column));
    }
  };
  for (const EpilogueNode& node : epilogue.nodes) {
    std::array<double, kColumns> results{};  // all columns before any is appended: even and odd read both
    for (std::size_t column = 0; column < kColumns; ++column) results[column] = value_of(node, column);
    for (std::size_t column = 0; column < kColumns; ++column) values[column].push_back(results[column]);
  }
  return values;
}

}  // namespace

std::vector<double> evaluate_nodes(const Epilogue& epilogue, const EpilogueElement& element) {
  return evaluate_columns<1>(epilogue, {element}).front();
}

std::array<std::vector<double>, 2> evaluate_pair(const Epilogue& epilogue,
                                                 const std::array<EpilogueElement, 2>& columns) {
  return evaluate_columns(epilogue, columns);
}

double evaluate(const Epilogue& epilogue, double accumulator, double source, double alpha, double beta) {
  const EpilogueElement element{.accumulator = accumulator, .source = source, .alpha = alpha, .beta = beta};
  return evaluate_nodes(epilogue, element)[static_cast<std::size_t>(epilogue.node_of_d())];
}

}  // namespace tilewright::op
