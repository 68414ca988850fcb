// Writes an epilogue graph as CUDA C++: a struct whose function apply() has one statement per node.
#pragma once

#include <span>

#include "tilewright/base/text.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::lower::cuda {

/// Writes `struct Epilogue` for the problem as computed, with the members that output_tile.cuh, staged_vectors.cuh and
/// reduction.cuh in device/tilewright/epilogue/ use. If the problem has no C, the struct does not read it.
/// `tma_outputs` are the indices in Epilogue::outputs of the outputs that TMA stores (tma_output.cuh).
/// @pre op::validate(operands)
void write_epilogue(SourceWriter& out, const op::GemmSignature& operands, std::span<const int> tma_outputs = {});

/// The name of the struct in `struct Plan` with the shared-memory layout of a panel of such elements, e.g. "Panel16".
std::string panel_name(DType element);

}  // namespace tilewright::lower::cuda
