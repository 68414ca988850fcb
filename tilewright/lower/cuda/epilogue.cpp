#include "tilewright/lower/cuda/epilogue.hpp"

#include <algorithm>
#include <map>

#include "tilewright/op/fused_products.hpp"
#include "tilewright/plan/parameters.hpp"

namespace tilewright::lower::cuda {
namespace {

// The value as a C++ literal that is exact: floating-point values are written in hexadecimal.
std::string literal(double value, DType compute) {
  if (compute == DType::s32) return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{:a}{}", value, compute == DType::f32 ? "f" : "");
}

// The member of Epilogue::Parameters for a scalar or tensor of the epilogue.
std::string member(const std::string& label) { return plan::label_name(label).emitted(); }

// The statements of the loop in apply(). Iteration i computes every node of the epilogue for column i of the values
// that apply() receives or, in a gated epilogue, for the columns i and i + 1. A node that differs between the two
// columns becomes two variables, x3_0 and x3_1; all other nodes become one, x3. A product that is used once, in a sum
// or a difference, is fused with it to one multiply-add and becomes no variable. The choice depends on the graph alone,
// so that all kernels with the same epilogue compute the same bits. In a kernel without C, whose gate is 0 in every
// launch, the products of C and its gate are the constant 0.
class NodeText {
 public:
  NodeText(const op::Epilogue& epilogue, bool reads_source)
      : epilogue_(epilogue),
        columns_(epilogue.columns_per_element()),
        varies_(epilogue.varies_by_column()),
        fused_(op::fused_products(epilogue)),
        is_zero_(epilogue.nodes.size(), false),
        is_used_(epilogue.nodes.size(), false) {
    if (!reads_source) find_zeros();
    find_used(epilogue.node_of_d());
    for (const op::EpilogueOutput& output : epilogue.outputs) find_used(output.node);
  }

  void write(SourceWriter& out) const {
    for (int node = 0; node < static_cast<int>(epilogue_.nodes.size()); ++node) {
      if (!is_used_[static_cast<std::size_t>(node)] || std::ranges::find(fused_, node) != fused_.end()) continue;
      for (int column = 0; column < (is_pair(node) ? columns_ : 1); ++column)
        out.line("const Compute {} = {};", value(node, column), expression(node, column));
    }
  }

  std::string value(int node, int column) const {
    if (is_zero_[static_cast<std::size_t>(node)]) return literal(0, epilogue_.compute);
    return is_pair(node) ? fmt::format("x{}_{}", node, column) : fmt::format("x{}", node);
  }

  /// The index of the pair's first or second column.
  static std::string index(int column) { return column == 0 ? "i" : fmt::format("i + {}", column); }

 private:
  bool is_pair(int node) const { return columns_ > 1 && varies_[static_cast<std::size_t>(node)]; }
  void find_zeros();
  void find_used(int node);
  std::string expression(int node, int column) const;
  std::string fused_expression(int node, int column) const;

  const op::Epilogue& epilogue_;
  int columns_;
  std::vector<bool> varies_;
  std::vector<int> fused_;     // for each node, the input that is a product fused with it, or op::kNoProduct
  std::vector<bool> is_zero_;  // for each node, whether it is C in a kernel without C, or a product of it
  std::vector<bool> is_used_;  // for each node, whether D or another output depends on it
};

void NodeText::find_zeros() {
  for (std::size_t i = 0; i < epilogue_.nodes.size(); ++i) {
    const op::EpilogueNode& node = epilogue_.nodes[i];
    const auto is_zero = [&](int side) {
      return is_zero_[static_cast<std::size_t>(node.inputs[static_cast<std::size_t>(side)])];
    };
    is_zero_[i] =
        node.op == op::EpilogueOp::source || (node.op == op::EpilogueOp::multiply && (is_zero(0) || is_zero(1)));
  }
}

void NodeText::find_used(int node) {
  const auto at = static_cast<std::size_t>(node);
  if (is_zero_[at] || is_used_[at]) return;
  is_used_[at] = true;
  for (int side = 0; side < op::arity(epilogue_.nodes[at].op); ++side)
    find_used(epilogue_.nodes[at].inputs[static_cast<std::size_t>(side)]);
}

std::string NodeText::fused_expression(int number, int column) const {
  const op::EpilogueNode& node = epilogue_.nodes[static_cast<std::size_t>(number)];
  const int product = fused_[static_cast<std::size_t>(number)];
  const op::EpilogueNode& factors = epilogue_.nodes[static_cast<std::size_t>(product)];
  const bool is_first = node.inputs[0] == product;
  std::string x = value(factors.inputs[0], column);
  std::string z = value(node.inputs[is_first ? 1 : 0], column);
  if (node.op == op::EpilogueOp::subtract) {
    std::string& negated = is_first ? z : x;
    negated = fmt::format("tilewright::numeric::neg({})", negated);
  }
  return fmt::format("tilewright::numeric::fma({}, {}, {})", x, value(factors.inputs[1], column), z);
}

std::string NodeText::expression(int number, int column) const {
  const op::EpilogueNode& node = epilogue_.nodes[static_cast<std::size_t>(number)];
  const DType compute = epilogue_.compute;
  if (fused_[static_cast<std::size_t>(number)] != op::kNoProduct) return fused_expression(number, column);
  const auto input = [&](int side, int at) { return value(node.inputs[static_cast<std::size_t>(side)], at); };
  switch (node.op) {
    case op::EpilogueOp::accumulator:
      return fmt::format("values[{}]", index(column));
    case op::EpilogueOp::source:
      return fmt::format("source[{}]", index(column));
    case op::EpilogueOp::scalar:
      return "parameters." + member(node.label);
    case op::EpilogueOp::constant:
      return literal(node.value, compute);
    case op::EpilogueOp::tensor:
      return fmt::format("{}[{}]", member(node.label), index(column));
    case op::EpilogueOp::row_index:
      return "Compute(place.row)";
    case op::EpilogueOp::column_index:
      return fmt::format("Compute(place.column + {})", index(column));
    case op::EpilogueOp::convert:
      return fmt::format("tilewright::convert<Compute>(tilewright::convert<{}>({}))", cuda_name(node.type),
                         input(0, column));
    case op::EpilogueOp::even:
      return input(0, 0);
    case op::EpilogueOp::odd:
      return input(0, 1);
    default: {
      std::string call = fmt::format("tilewright::numeric::{}({}", op::name(node.op), input(0, column));
      for (int side = 1; side < op::arity(node.op); ++side) call += fmt::format(", {}", input(side, column));
      return call + ")";
    }
  }
}

std::string_view along(bool varies, bool is_contiguous) {
  if (!varies) return "none";
  return is_contiguous ? "contiguous" : "strided";
}

std::string tensor_type(const op::EpilogueTensorSignature& tensor, const op::Broadcast& broadcast) {
  return fmt::format("tilewright::EpilogueTensor<{}, tilewright::Along::{}, tilewright::Along::{}, {}>",
                     cuda_name(tensor.element), along(broadcast.along_m, tensor.contiguous == op::ContiguousMode::rows),
                     along(broadcast.along_n, tensor.contiguous == op::ContiguousMode::columns),
                     tensor.contiguous == op::ContiguousMode::columns ? tensor.alignment : 1);
}

void write_parameters(SourceWriter& out, const op::GemmSignature& operands) {
  const op::Epilogue& epilogue = operands.epilogue;
  out.line("struct Parameters {{").indent();
  for (const std::string& label : epilogue.scalars()) out.line("Compute {};", member(label));
  std::size_t index = 0;
  for (const op::EpilogueNode* node : epilogue.tensors())
    out.line("{} {};", tensor_type(operands.tensors[index++], node->broadcast), member(node->label));
  for (const op::EpilogueOutput& output : epilogue.outputs)
    out.line("{} {};", tensor_type(operands.tensors[index++], output.broadcast), member(output.label));
  out.dedent().line("}};");
}

// Numbers the row vectors and the column vectors separately, each from 0, in the order of Epilogue::tensors().
class VectorNumbers {
 public:
  /// The number of the next tensor, which is broadcast in this way; 0 if it is not a vector.
  int next(const op::Broadcast& broadcast) {
    if (broadcast == op::kRowVector) return rows_++;
    return broadcast == op::kColumnVector ? columns_++ : 0;
  }
  int rows() const { return rows_; }
  int columns() const { return columns_; }

 private:
  int rows_ = 0, columns_ = 0;
};

void write_visitor_head(SourceWriter& out, std::string_view function) {
  out.line("template <class Visitor>");
  const std::string head = fmt::format("static __device__ __forceinline__ void {}(", function);
  out.line("{}[[maybe_unused]] const Parameters& parameters,", head);
  out.line("{:{}}[[maybe_unused]] const Visitor& visitor) {{", "", head.size()).indent();
}

void write_vectors(SourceWriter& out, const op::Epilogue& epilogue) {
  VectorNumbers numbers;
  write_visitor_head(out, "for_each_vector");
  for (const op::EpilogueNode* node : epilogue.tensors()) {
    if (node->broadcast != op::kRowVector && node->broadcast != op::kColumnVector) continue;
    out.line("visitor.template visit<{}>(parameters.{});", numbers.next(node->broadcast), member(node->label));
  }
  out.dedent().line("}}");
  out.line("static constexpr int kRowVectors = {}, kColumnVectors = {};", numbers.rows(), numbers.columns());
}

std::string_view operator_type(op::Reduction reduction) {
  if (reduction == op::Reduction::sum) return "Sum";
  return reduction == op::Reduction::maximum ? "Maximum" : "Minimum";
}

// The reduced outputs of an epilogue and the type tilewright::Reduction<...> of each; see
// device/tilewright/epilogue/reduction.cuh.
class ReductionTypes {
 public:
  explicit ReductionTypes(const op::Epilogue& epilogue) {
    for (const op::EpilogueOutput& output : epilogue.outputs) {
      if (output.reduction == op::Reduction::none) continue;
      int& number = output.broadcast == op::kRowVector      ? columns_
                    : output.broadcast == op::kColumnVector ? rows_
                                                            : singles_;
      const std::string_view results = output.broadcast == op::kRowVector      ? "columns"
                                       : output.broadcast == op::kColumnVector ? "rows"
                                                                               : "single";
      all_.push_back({member(output.label),
                      fmt::format("tilewright::Reduction<{}, {}, tilewright::Results::{}, tilewright::{}<Compute>>",
                                  all_.size(), number++, results, operator_type(output.reduction))});
    }
  }

  struct Entry {
    std::string member, type;
  };
  const std::vector<Entry>& all() const { return all_; }
  int columns() const { return columns_; }
  int rows() const { return rows_; }
  int singles() const { return singles_; }

 private:
  std::vector<Entry> all_;
  int columns_ = 0, rows_ = 0, singles_ = 0;
};

void write_reductions(SourceWriter& out, const ReductionTypes& reductions) {
  write_visitor_head(out, "for_each_reduction");
  for (const auto& [member, type] : reductions.all())
    out.line("visitor.template visit<{}>(parameters.{});", type, member);
  out.dedent().line("}}");
  out.line("static constexpr int kReductions = {}, kColumnResults = {}, kRowResults = {}, kSingleResults = {};",
           reductions.all().size(), reductions.columns(), reductions.rows(), reductions.singles());
}

// The outputs other than D that TMA stores and the type tilewright::TmaOutput<...> of each; see
// device/tilewright/epilogue/tma_output.cuh.
class TmaOutputTypes {
 public:
  TmaOutputTypes(const op::GemmSignature& operands, std::span<const int> outputs) {
    const std::size_t sources = operands.epilogue.tensors().size();
    int bytes_before = 0;
    for (const int output : outputs) {
      const DType element = operands.tensors[sources + static_cast<std::size_t>(output)].element;
      types_[output] = fmt::format("tilewright::TmaOutput<{}, {}, {}, Plan::{}>", types_.size(), cuda_name(element),
                                   bytes_before, panel_name(element));
      bytes_before += bytes(element);
    }
  }

  /// The type of an output; empty if the threads store it.
  std::string of(int output) const {
    const auto found = types_.find(output);
    return found == types_.end() ? std::string() : found->second;
  }

  void write_visitor(SourceWriter& out) const {
    out.line("template <class Visitor>");
    out.line("static __device__ __forceinline__ void for_each_tma_output(const Visitor& visitor) {{").indent();
    for (const auto& [output, type] : types_) out.line("visitor.template visit<{}>();", type);
    out.dedent().line("}}");
  }

 private:
  std::map<int, std::string> types_;
};

void write_apply(SourceWriter& out, const op::Epilogue& epilogue, bool reads_source, const ReductionTypes& reductions,
                 const TmaOutputTypes& by_tma) {
  const std::vector<const op::EpilogueNode*> tensors = epilogue.tensors();
  out.line("template <int kCount, class Place>");
  out.line("static __device__ __forceinline__ void apply(Compute (&values)[kCount],");
  out.line("                                             [[maybe_unused]] const Compute (&source)[kCount],");
  out.line("                                             [[maybe_unused]] const Parameters& parameters,");
  out.line("                                             [[maybe_unused]] const Place& place) {{").indent();
  VectorNumbers numbers;
  for (const op::EpilogueNode* node : tensors) {
    out.line("Compute {}[kCount];", member(node->label));
    out.line("place.template load<{0}>(parameters.{1}, {1});", numbers.next(node->broadcast), member(node->label));
  }
  for (const op::EpilogueOutput& output : epilogue.outputs) out.line("Compute {}[kCount];", member(output.label));
  out.line("#pragma unroll");
  const int columns = epilogue.columns_per_element();
  out.line("for (int i = 0; i < kCount; {}) {{", columns == 1 ? "++i" : fmt::format("i += {}", columns)).indent();
  const NodeText nodes(epilogue, reads_source);
  nodes.write(out);
  out.line("values[i] = {};", nodes.value(epilogue.node_of_d(), 0));
  for (const op::EpilogueOutput& output : epilogue.outputs) {
    for (int column = 0; column < columns; ++column)
      out.line("{}[{}] = {};", member(output.label), NodeText::index(column), nodes.value(output.node, column));
  }
  out.dedent().line("}}");
  for (int i = 0; i < static_cast<int>(epilogue.outputs.size()); ++i) {
    const op::EpilogueOutput& output = epilogue.outputs[static_cast<std::size_t>(i)];
    if (output.reduction != op::Reduction::none) continue;
    const std::string name = member(output.label), type = by_tma.of(i);
    if (type.empty()) {
      out.line("parameters.{0}.store({0}, place);", name);
    } else {
      out.line("place.template store<{}>({});", type, name);
    }
  }
  for (const auto& [member, type] : reductions.all()) out.line("place.template reduce<{}>({});", type, member);
  out.dedent().line("}}");
}

}  // namespace

std::string panel_name(DType element) { return fmt::format("Panel{}", bits(element)); }

void write_epilogue(SourceWriter& out, const op::GemmSignature& operands, std::span<const int> tma_outputs) {
  const op::Epilogue& epilogue = operands.epilogue;
  const bool reads_source = operands.has_c && epilogue.reads_source();
  const std::optional<std::string> gate = reads_source ? epilogue.gate(op::EpilogueOp::source) : std::nullopt;
  out.line("// {}", op::signature(epilogue));
  out.line("struct Epilogue {{").indent();
  out.line("using Compute = {};", cuda_name(epilogue.compute));
  out.line("static constexpr int kColumnsPerElement = {};", epilogue.columns_per_element());
  write_parameters(out, operands);
  out.line("static constexpr bool kReadsSource = {};", reads_source);
  out.line("static constexpr bool kHasTensors = {};", !epilogue.tensors().empty() || !epilogue.outputs.empty());
  out.line("static __device__ __forceinline__ bool reads_source([[maybe_unused]] const Parameters& parameters) {{")
      .indent();
  if (gate) {
    out.line("return parameters.{} != Compute(0);", member(*gate));
  } else {
    out.line("return kReadsSource;");
  }
  out.dedent().line("}}");
  const ReductionTypes reductions(epilogue);
  write_vectors(out, epilogue);
  write_reductions(out, reductions);
  const TmaOutputTypes by_tma(operands, tma_outputs);
  if (!tma_outputs.empty()) by_tma.write_visitor(out);
  write_apply(out, epilogue, reads_source, reductions, by_tma);
  out.dedent().line("}};");
}

}  // namespace tilewright::lower::cuda
