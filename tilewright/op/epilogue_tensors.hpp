// The auxiliary tensors that an epilogue reads and writes in addition to C and D.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tilewright/op/gemm.hpp"

namespace tilewright::op {

struct EpilogueTensor {
  std::string_view label;
  Broadcast broadcast;
  bool is_written;
};

/// The tensors read, then the outputs; this is the order of GemmSignature::tensors. The labels refer to `epilogue`.
std::vector<EpilogueTensor> epilogue_tensors(const Epilogue& epilogue);

/// Whether the epilogue writes the tensor of that name.
bool is_output(const Epilogue& epilogue, std::string_view label);
/// Whether the epilogue reads a tensor of that name that has an element for each of D.
bool is_full_input(const Epilogue& epilogue, std::string_view label);

/// An epilogue's tensor as an operand. An input with one element for each of D may be identical to an output, as C may
/// be D: every kernel reads an element of it to compute that element of the outputs, and stores these afterwards.
template <class TensorPointer>
BasicOperand<TensorPointer> tensor_operand(const Epilogue& epilogue, std::string_view name, TensorPointer tensor) {
  if (is_output(epilogue, name)) return {.name = name, .tensor = tensor, .access = Access::write};
  return {.name = name, .tensor = tensor, .may_be_output = is_full_input(epilogue, name)};
}

/// Refuses tensors that are missing, superfluous, or of the wrong shape, type or layout.
/// @pre the epilogue and the other operands are valid
Support check_epilogue_tensors(const Gemm& gemm);
/// Checks the tensors of a problem with `groups` groups: see GroupedGemm::gemm.
Support check_epilogue_tensors(const Gemm& gemm, GroupedMode mode, std::int64_t groups);

std::vector<EpilogueTensorSignature> describe_epilogue_tensors(const Epilogue& epilogue,
                                                               std::span<const NamedTensor> tensors,
                                                               GroupedMode mode = GroupedMode::none);

/// The tensor of that name, or null.
const Tensor* find_tensor(std::span<const NamedTensor> tensors, std::string_view name);

/// Refuses a batch whose matrices overlap. They may follow each other, or interleave row by row (column by column if
/// column-major). `role` names the tensor in the reason. @pre view_matrix accepted it
Support check_distinct(const Tensor& tensor, std::string_view role);

}  // namespace tilewright::op
