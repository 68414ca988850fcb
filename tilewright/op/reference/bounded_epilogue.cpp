#include "tilewright/op/reference/bounded_epilogue.hpp"

#include <cmath>

#include "tilewright/op/fill.hpp"
#include "tilewright/op/reference/operand_element.hpp"

namespace tilewright::op {

BoundedEpilogue::BoundedEpilogue(const GemmView& gemm)
    : gemm_(gemm),
      unit_(roundoff(gemm.epilogue->compute)),
      columns_(static_cast<std::size_t>(gemm.epilogue->columns_per_element())) {
  for (const EpilogueNode& node : gemm.epilogue->nodes) leaves_.push_back(constant_leaf(node));
  for (std::vector<BoundedValue>& of_column : values_) of_column.resize(leaves_.size());
  reads_product_ = gemm.reads_product;
  reads_source_ = gemm.reads_source;
}

const std::array<std::vector<BoundedValue>, 2>& BoundedEpilogue::evaluate(const GemmView& one, std::int64_t row,
                                                                          std::int64_t column, const Dots& dots) {
  const std::int64_t first = column * static_cast<std::int64_t>(columns_);
  const std::array<ProductElement, 2> elements{ProductElement{one, row, first, 0, accumulator(one, dots[0])},
                                               ProductElement{one, row, first + 1, 1, accumulator(one, dots[1])}};
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    for (std::size_t c = 0; c < columns_; ++c) values_[c][i] = node(i, elements[c]);
  }
  return values_;
}

BoundedValue BoundedEpilogue::exact(double value) const {
  return {value, std::fabs(value - round_to(gemm_.epilogue->compute, value))};
}

BoundedValue BoundedEpilogue::constant_leaf(const EpilogueNode& node) const {
  if (node.op != EpilogueOp::scalar) return exact(node.value);
  return exact(gemm_.scalar(node.label));
}

BoundedValue BoundedEpilogue::node(std::size_t index, const ProductElement& element) const {
  const EpilogueNode& node = gemm_.epilogue->nodes[index];
  const GemmView& one = element.one;
  std::size_t of_pair = element.of_pair;
  if (node.op == EpilogueOp::even) of_pair = 0;
  if (node.op == EpilogueOp::odd) of_pair = 1;
  std::array<BoundedValue, 3> in{};
  for (std::size_t side = 0; side < static_cast<std::size_t>(arity(node.op)); ++side)
    in[side] = values_[of_pair][static_cast<std::size_t>(node.inputs[side])];
  switch (node.op) {
    case EpilogueOp::accumulator: {
      if (!reads_product_) return {};
      const bool is_exact = gemm_.accumulator == DType::s32 && std::fabs(element.accumulated.value) < 0x1p24;
      return is_exact ? element.accumulated : rounded(element.accumulated, unit_);
    }
    case EpilogueOp::source:
      return reads_source_ ? exact(load(one.c, element.row, element.column)) : BoundedValue{};
    case EpilogueOp::scalar:
    case EpilogueOp::constant:
      return leaves_[index];
    case EpilogueOp::tensor:
      return exact(tensor_element(one, node, element.row, element.column));
    case EpilogueOp::row_index:
      return exact(static_cast<double>(one.first_row + element.row));
    case EpilogueOp::column_index:
      return exact(static_cast<double>(one.first_column + element.column));
    case EpilogueOp::convert:
      return converted(node.type, in[0]);
    case EpilogueOp::even:
    case EpilogueOp::odd:
      return in[0];
    default:
      return apply(node.op, in, unit_);
  }
}

}  // namespace tilewright::op
