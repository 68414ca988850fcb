// An epilogue graph as CUDA C++: one struct whose apply() is the graph, a line a node.
#pragma once

#include <span>

#include "tilewright/base/text.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::lower::cuda {

/// Writes `struct Epilogue` with Compute, Parameters, kReadsSource, reads_source() and apply(), as
/// device/tilewright/epilogue/output_tile.cuh asks, of the problem as computed; without C it reads none.
/// @pre op::validate(operands)
/// `tma_outputs` numbers those of Epilogue::outputs that leave by TMA, device/tilewright/epilogue/tma_output.cuh.
void write_epilogue(SourceWriter& out, const op::GemmDescription& operands, std::span<const int> tma_outputs = {});

}  // namespace tilewright::lower::cuda
