// Refusals of signatures, and of numbers of designs, that several families share.
#pragma once

#include <string_view>

#include "tilewright/arch/limits.hpp"
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

/// Refuses epilogues with outputs besides D.
Support check_no_other_outputs(const op::Epilogue& epilogue);

/// Refuses a number of a design that is not from `least` to `most`. `what` names it in the message.
Support check_between(std::string_view what, int value, int least, int most);

/// Refuses a number of a design that is no positive multiple of `multiple`, or more than `most`.
Support check_multiple(std::string_view what, int value, int multiple, int most);

/// Refuses CTAs of `threads` threads if a thread needs more registers than the target can give it. `what` says in the
/// message what needs them, in the plural.
Support check_registers(std::string_view what, int needed, int threads, const arch::ArchLimits& limits);

}  // namespace tilewright::plan
