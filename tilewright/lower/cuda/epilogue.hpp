// An epilogue graph as CUDA C++: one struct whose apply() is the graph, a line a node.
#pragma once

#include <span>

#include "tilewright/base/text.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::lower::cuda {

/// Writes `struct Epilogue` of the problem as computed, with what device/tilewright/epilogue/ asks for:
/// output_tile.cuh, staged_vectors.cuh, reduction.cuh. Without C it reads none. `tma_outputs` numbers those of
/// Epilogue::outputs that leave by TMA, tma_output.cuh. @pre op::validate(operands)
void write_epilogue(SourceWriter& out, const op::GemmSignature& operands, std::span<const int> tma_outputs = {});

/// The struct within `struct Plan` that says how a panel of such elements lies: "Panel16".
std::string panel_name(DType element);

}  // namespace tilewright::lower::cuda
