#include "tilewright/program/gemm_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "tilewright/base/error.hpp"
#include "tilewright/op/fused_products.hpp"

namespace tilewright::program {
namespace {

using op::EpilogueOp;

/// TMA stores lines that begin at multiples of this.
constexpr int kLineAlignment = 16;

std::string scalar_name(const std::string& label) { return "scalar_" + label; }
std::string tensor_name(const std::string& label) { return "tensor_" + label; }

/// One element as it is stored in memory: b16 for f16 and bf16.
RegisterType stored_type(DType element) { return element == DType::f32 ? RegisterType::f32 : RegisterType::b16; }

/// The two elements of 16 bits that pack() converted together. Both are converted at once also where they are stored
/// alone: where a cvt.rn.f16.f32 read an accumulator itself, ptxas 13.0 serialised all wgmma of programs in MLIR
/// (C7514).
std::array<Value, 2> halves(KernelBuilder& k, const Value& packed) {
  const std::vector<Value> both = k.instruction(
      "mov.b32 {$0, $1}, $2;", {output(RegisterType::b16), output(RegisterType::b16), input(packed)}, Effect::pure);
  return {both[0], both[1]};
}

Value compare(KernelBuilder& k, std::string_view comparison, const Value& a, const Value& b) {
  return k
      .instruction(fmt::format("{{\n.reg .pred p;\nsetp.{}.f32 p, $1, $2;\nselp.f32 $0, 0f3f800000, 0f00000000, p;\n}}",
                               comparison),
                   {output(RegisterType::f32), input(a), input(b)}, Effect::pure)
      .front();
}

Value unary(KernelBuilder& k, std::string_view mnemonic, const Value& a) {
  return k.instruction(fmt::format("{} $0, $1;", mnemonic), {output(RegisterType::f32), input(a)}, Effect::pure)
      .front();
}

Value logistic(KernelBuilder& k, const Value& x) {
  constexpr float kLog2E = 1.44269504F;
  const Value power = unary(k, "ex2.approx.ftz.f32", multiply(k, constant(k, -kLog2E), x));
  return unary(k, "rcp.approx.ftz.f32", add(k, constant(k, 1.0F), power));
}

/// An operation of the graph in f32, with the rounding of device/tilewright/numeric/functions.cuh.
Value apply(KernelBuilder& k, EpilogueOp operation, const std::vector<Value>& x) {
  switch (operation) {
    case EpilogueOp::add:
      return add(k, x[0], x[1]);
    case EpilogueOp::subtract:
      return subtract(k, x[0], x[1]);
    case EpilogueOp::multiply:
      return multiply(k, x[0], x[1]);
    case EpilogueOp::divide:
      return k
          .instruction("div.rn.f32 $0, $1, $2;", {output(RegisterType::f32), input(x[0]), input(x[1])}, Effect::pure)
          .front();
    case EpilogueOp::maximum:
      return k
          .instruction("max.NaN.f32 $0, $1, $2;", {output(RegisterType::f32), input(x[0]), input(x[1])}, Effect::pure)
          .front();
    case EpilogueOp::minimum:
      return k
          .instruction("min.NaN.f32 $0, $1, $2;", {output(RegisterType::f32), input(x[0]), input(x[1])}, Effect::pure)
          .front();
    case EpilogueOp::less:
      return compare(k, "lt", x[0], x[1]);
    case EpilogueOp::less_equal:
      return compare(k, "le", x[0], x[1]);
    case EpilogueOp::equal:
      return compare(k, "eq", x[0], x[1]);
    case EpilogueOp::negate:
      return unary(k, "neg.f32", x[0]);
    case EpilogueOp::absolute:
      return unary(k, "abs.f32", x[0]);
    case EpilogueOp::reciprocal:
      return reciprocal(k, x[0]);
    case EpilogueOp::logistic:
      return logistic(k, x[0]);
    case EpilogueOp::square_root:
      return unary(k, "sqrt.rn.f32", x[0]);
    case EpilogueOp::reciprocal_square_root:
      return reciprocal_sqrt(k, x[0]);
    case EpilogueOp::floor:
      return unary(k, "cvt.rmi.f32.f32", x[0]);
    case EpilogueOp::round:
      return unary(k, "cvt.rni.f32.f32", x[0]);
    case EpilogueOp::fma:
      return fma(k, x[0], x[1], x[2]);
    case EpilogueOp::where:
      return k
          .instruction("{\n.reg .pred p;\nsetp.neu.f32 p, $1, 0f00000000;\nselp.f32 $0, $2, $3, p;\n}",
                       {output(RegisterType::f32), input(x[0]), input(x[1]), input(x[2])}, Effect::pure)
          .front();
    default:
      throw InvalidArgument(fmt::format("programs have no {} in epilogues", op::name(operation)));
  }
}

}  // namespace

GemmOutput::GemmOutput(KernelBuilder& k, const op::GemmSignature& operands, const Number& m, const Number& n,
                       bool stages_d)
    : kernel_(&k), operands_(operands), stages_d_(stages_d), extent_m_(m), extent_n_(n) {
  const op::Epilogue& epilogue = operands_.epilogue;
  for (const std::string& label : epilogue.scalars()) scalars_.push_back(k.scalar(scalar_name(label)));
  reads_source_ = operands.has_c && epilogue.reads_source();
  if (reads_source_) {
    c_ = declare("c", operands.c.element, operands.c.alignment, op::kFull,
                 operands.c.layout == op::MatrixLayout::row_major);
    source_is_read_ = k.launch("source_is_read", 1, 0, 1);
  }
  if (!stages_d) d_ = declare("d", operands.d.element, operands.d.alignment, op::kFull, true);
  std::size_t index = 0;
  const auto declare_next = [&](const std::string& label, const op::Broadcast& broadcast) {
    const op::EpilogueTensorSignature& tensor = operands_.tensors[index++];
    tensors_.push_back(declare(tensor_name(label), tensor.element, tensor.alignment, broadcast,
                               tensor.contiguous == op::ContiguousMode::columns));
  };
  for (const op::EpilogueNode* node : epilogue.tensors()) declare_next(node->label, node->broadcast);
  for (const op::EpilogueOutput& output : epilogue.outputs) declare_next(output.label, output.broadcast);
}

Tensor GemmOutput::staged_d(KernelBuilder& k, const op::GemmSignature& operands, const Number& m, const Number& n,
                            const Number& batch) {
  const std::int64_t divisor = kLineAlignment * 8 / bits(operands.d.element);
  return {.name = "d",
          .element = operands.d.element,
          .extents = {m, n, batch},
          .strides = {k.launch("d_line", divisor), 1, k.launch("d_batch", divisor)}};
}

GemmOutput::OutputTensor GemmOutput::declare(const std::string& name, DType element, int alignment,
                                             const op::Broadcast& broadcast, bool is_contiguous_along_n) {
  KernelBuilder& k = *kernel_;
  const bool is_aligned = is_contiguous_along_n && broadcast.along_n;
  OutputTensor tensor;
  tensor.element = element;
  tensor.address = k.address(name, alignment * bytes(element));
  tensor.stride_m = broadcast.along_m ? k.launch(name + "_stride_m", is_aligned ? alignment : 1) : Number(0);
  tensor.stride_n = !broadcast.along_n ? Number(0) : is_aligned ? Number(1) : k.launch(name + "_stride_n");
  tensor.stride_batch = k.launch(name + "_stride_batch", is_aligned ? alignment : 1);
  return tensor;
}

Value GemmOutput::load(const OutputTensor& tensor, const Number& holds, const Number& batch, const Number& row,
                       const Number& column) const {
  const Number offset = batch * tensor.stride_batch + row * tensor.stride_m + column * tensor.stride_n;
  const Value element =
      load_global_if(*kernel_, holds, tensor.address, offset * bytes(tensor.element), stored_type(tensor.element));
  return to_f32(*kernel_, element, tensor.element);
}

std::vector<Value> GemmOutput::evaluate(const Value& accumulator, const Number& holds, const Number& batch,
                                        const Number& row, const Number& column) const {
  KernelBuilder& k = *kernel_;
  const op::Epilogue& epilogue = operands_.epilogue;
  const std::vector<std::string> scalars = epilogue.scalars();
  const std::vector<const op::EpilogueNode*> tensors = epilogue.tensors();
  const std::vector<int> fused = op::fused_products(epilogue);
  std::vector<Value> values(epilogue.nodes.size());
  const auto value_of = [&](int node) { return values[static_cast<std::size_t>(node)]; };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::find(fused.begin(), fused.end(), static_cast<int>(i)) != fused.end()) continue;
    const op::EpilogueNode& node = epilogue.nodes[i];
    switch (node.op) {
      case EpilogueOp::accumulator:
        values[i] = accumulator.type == RegisterType::f32 ? accumulator : unary(k, "cvt.rn.f32.s32", accumulator);
        break;
      case EpilogueOp::source:
        values[i] = reads_source_ ? load(c_, both(holds, source_is_read_), batch, row, column) : constant(k, 0.0F);
        break;
      case EpilogueOp::scalar:
        values[i] =
            scalars_[static_cast<std::size_t>(std::find(scalars.begin(), scalars.end(), node.label) - scalars.begin())];
        break;
      case EpilogueOp::constant:
        values[i] = constant(k, static_cast<float>(node.value));
        break;
      case EpilogueOp::tensor: {
        const auto found = std::find_if(tensors.begin(), tensors.end(),
                                        [&](const op::EpilogueNode* each) { return each->label == node.label; });
        values[i] = load(tensors_[static_cast<std::size_t>(found - tensors.begin())], holds, batch, row, column);
        break;
      }
      case EpilogueOp::row_index:
        values[i] = to_f32(k, row);
        break;
      case EpilogueOp::column_index:
        values[i] = to_f32(k, column);
        break;
      default: {
        if (fused[i] != op::kNoProduct) {
          const op::EpilogueNode& product = epilogue.nodes[static_cast<std::size_t>(fused[i])];
          const bool is_first = node.inputs[0] == fused[i];
          Value x = value_of(product.inputs[0]), z = value_of(node.inputs[is_first ? 1 : 0]);
          if (node.op == EpilogueOp::subtract) (is_first ? z : x) = unary(k, "neg.f32", is_first ? z : x);
          values[i] = fma(k, x, value_of(product.inputs[1]), z);
          break;
        }
        std::vector<Value> inputs;
        for (int side = 0; side < op::arity(node.op); ++side)
          inputs.push_back(value_of(node.inputs[static_cast<std::size_t>(side)]));
        values[i] = apply(k, node.op, inputs);
      }
    }
  }
  std::vector<Value> results{value_of(epilogue.node_of_d())};
  for (const op::EpilogueOutput& output : epilogue.outputs) results.push_back(value_of(output.node));
  return results;
}

void GemmOutput::store(const OutputTensor& tensor, int alignment, const std::array<Value, 2>& values,
                       const Number& batch, const Number& row, const Number& column) const {
  KernelBuilder& k = *kernel_;
  const std::int64_t bytes = tilewright::bytes(tensor.element);
  const Number offset = batch * tensor.stride_batch + row * tensor.stride_m + column * tensor.stride_n;
  const Number first = both(less(row, extent_m_), less(column, extent_n_));
  const Number second = both(less(row, extent_m_), less(column + 1, extent_n_));
  const bool is_half = tensor.element != DType::f32;
  const Value packed = is_half ? pack(k, tensor.element, values[0], values[1]) : Value{};
  const std::array<Value, 2> elements = is_half ? halves(k, packed) : values;
  const auto store_one = [&](const Number& holds, int i) {
    store_global_if(k, holds, tensor.address, (offset + tensor.stride_n * i) * bytes,
                    {elements[static_cast<std::size_t>(i)]});
  };
  if (alignment < 2 || !tensor.stride_n.is_static(1)) {
    store_one(first, 0);
    store_one(second, 1);
    return;
  }
  // Columns are even, and so are lines, so that both elements are one aligned vector. The last column may be alone.
  store_global_if(k, second, tensor.address, offset * bytes,
                  is_half ? std::vector{packed} : std::vector{values[0], values[1]});
  store_one(both(first, negation(second)), 0);
}

std::array<Value, 2> GemmOutput::store(const std::array<Value, 2>& accumulators, const Number& batch, const Number& row,
                                       const Number& column) const {
  std::array<std::vector<Value>, 2> results;
  for (const int i : {0, 1}) {
    const Number holds = both(less(row, extent_m_), less(column + i, extent_n_));
    results[static_cast<std::size_t>(i)] =
        evaluate(accumulators[static_cast<std::size_t>(i)], holds, batch, row, column + i);
  }
  const std::array<Value, 2> elements{results[0][0], results[1][0]};
  if (!stages_d_) store(d_, operands_.d.alignment, elements, batch, row, column);
  const std::size_t read = operands_.epilogue.tensors().size();
  for (std::size_t i = 0; i < operands_.epilogue.outputs.size(); ++i) {
    store(tensors_[read + i], operands_.tensors[read + i].alignment, {results[0][i + 1], results[1][i + 1]}, batch, row,
          column);
  }
  return elements;
}

void GemmOutput::add_arguments(LaunchArguments& values, const op::Epilogue& epilogue, const op::GemmView& arguments,
                               bool is_transposed) {
  for (const std::string& label : epilogue.scalars()) values.scalar(scalar_name(label), arguments.scalar(label));
  const auto add = [&](const std::string& name, const op::Tensor& tensor) {
    const std::int64_t rows = tensor.rows() == 1 ? 0 : tensor.row_stride();
    const std::int64_t columns = tensor.columns() == 1 ? 0 : tensor.column_stride();
    values.address(name, tensor.address)
        .integer(name + "_stride_m", is_transposed ? columns : rows)
        .integer(name + "_stride_n", is_transposed ? rows : columns)
        .integer(name + "_stride_batch", tensor.batch() == 1 ? 0 : tensor.batch_stride());
  };
  if (arguments.has_source) add("c", arguments.reads_source ? arguments.c.tensor : arguments.d.tensor);
  values.integer("source_is_read", arguments.reads_source ? 1 : 0);
  add("d", arguments.d.tensor);
  // TMA takes no stride of 0, and the stride of a single line or matrix does not matter.
  const op::Tensor& d = arguments.d.tensor;
  const std::int64_t least = std::max(1, kLineAlignment / bytes(d.dtype));
  const auto stride = [&](std::int64_t given) { return std::max(given / least * least, least); };
  values.integer("d_line", stride(is_transposed ? d.column_stride() : d.row_stride()))
      .integer("d_batch", d.batch() == 1 ? least : stride(d.batch_stride()));
  for (const op::EpilogueNode* node : epilogue.tensors()) add(tensor_name(node->label), arguments.tensor(node->label));
  for (const op::EpilogueOutput& output : epilogue.outputs)
    add(tensor_name(output.label), arguments.tensor(output.label));
}

}  // namespace tilewright::program
