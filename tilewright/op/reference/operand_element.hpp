// Elements of a problem's operands and of its epilogue's tensors.
#pragma once

#include <cstdint>

#include "tilewright/op/gemm_view.hpp"

namespace tilewright::op {

/// The element (row, column) of the operand's first matrix. Elements of an im2col matrix outside the image are 0.
double load(const OperandView& operand, std::int64_t row, std::int64_t column);
void store(const OperandView& operand, std::int64_t row, std::int64_t column, double value);

/// The element of the epilogue's tensor `node` that is broadcast to the element (row, column) of D.
double tensor_element(const GemmView& gemm, const EpilogueNode& node, std::int64_t row, std::int64_t column);

}  // namespace tilewright::op
