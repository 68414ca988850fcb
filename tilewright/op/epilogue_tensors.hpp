// The tensors that an epilogue reads and writes beside C and D: which there are, and what holds for them.
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

/// Sources, then outputs: the order of GemmDescription::tensors. The labels are the epilogue's.
std::vector<EpilogueTensor> epilogue_tensors(const Epilogue& epilogue);

/// Whether the tensor of that name is one that the epilogue writes.
bool is_output(const Epilogue& epilogue, std::string_view label);

/// Says which tensor is missing or not asked for, has another shape or type, or lies wrong.
/// @pre the epilogue and the other operands are valid
Support check_epilogue_tensors(const Gemm& gemm);

std::vector<EpilogueTensorDescription> describe_epilogue_tensors(const Epilogue& epilogue,
                                                                 std::span<const NamedTensor> tensors);

/// The tensor of that name, or null.
const Tensor* find_tensor(std::span<const NamedTensor> tensors, std::string_view name);

/// Refuses matrices that overlap: those of a batch lie one after another, or row by row (column by column) between each
/// other's. `role` names the tensor in the reason. @pre view_matrix accepted it
Support check_distinct(const Tensor& tensor, std::string_view role);

}  // namespace tilewright::op
