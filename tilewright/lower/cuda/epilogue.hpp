// An epilogue graph as CUDA C++: one struct whose apply() is the graph, a line a node.
#pragma once

#include "tilewright/base/text.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::lower::cuda {

/// Writes `struct Epilogue` with Compute, Parameters, kReadsSource, reads_source() and apply(), as
/// device/tilewright/epilogue/output_tile.cuh asks, of the problem as computed; without C it reads none.
/// @pre op::validate(operands)
void write_epilogue(SourceWriter& out, const op::GemmDescription& operands);

}  // namespace tilewright::lower::cuda
