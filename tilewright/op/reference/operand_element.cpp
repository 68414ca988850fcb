#include "tilewright/op/reference/operand_element.hpp"

#include <optional>

#include "tilewright/op/fill.hpp"

namespace tilewright::op {

double load(const OperandView& operand, std::int64_t row, std::int64_t column) {
  if (operand.access == OperandAccess::im2col) {
    const std::optional<std::int64_t> offset = operand.im2col.offset(row, column);
    return offset ? load_at(operand.tensor, *offset) : 0.0;
  }
  return load_at(operand.tensor, operand.offset(row, column));
}

void store(const OperandView& operand, std::int64_t row, std::int64_t column, double value) {
  store_at(operand.tensor, operand.offset(row, column), value);
}

double tensor_element(const GemmView& gemm, const EpilogueNode& node, std::int64_t row, std::int64_t column) {
  return load(gemm.tensor(node.label), node.broadcast.along_m ? row : 0, node.broadcast.along_n ? column : 0);
}

}  // namespace tilewright::op
