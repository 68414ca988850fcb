// Refusals of signatures that several families share.
#pragma once

#include "tilewright/base/support.hpp"
#include "tilewright/op/gemm_signature.hpp"

namespace tilewright::plan {

/// For products by mma.sync of f16 or of bf16: refuses operands that are not both f16 or both bf16, other accumulators
/// than f32, and other math.
Support check_half_products(const op::GemmSignature& signature);

/// Refuses C and D that are not row-major matrices with one leading dimension, and epilogues that pair columns.
Support check_row_major_output(const op::GemmSignature& signature);

/// Refuses epilogues with reductions.
Support check_no_reductions(const op::Epilogue& epilogue);

}  // namespace tilewright::plan
