// An epilogue graph as CUDA C++: one struct whose apply() is the graph, a line a node.
#pragma once

#include "tilewright/base/text.hpp"
#include "tilewright/op/epilogue.hpp"

namespace tilewright::lower::cuda {

/// Writes `struct Epilogue` with Compute, Scalars, kReadsSource, reads_source() and apply(), as
/// device/tilewright/epilogue/output_tile.cuh asks. @pre op::validate(epilogue)
void write_epilogue(SourceWriter& out, const op::Epilogue& epilogue);

}  // namespace tilewright::lower::cuda
