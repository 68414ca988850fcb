// An epilogue graph as CUDA C++: one struct whose apply() is the graph, a line a node.
#pragma once

#include "tilewright/base/text.hpp"
#include "tilewright/op/epilogue.hpp"

namespace tilewright::lower::cuda {

/// Writes `struct Epilogue` with Compute, Scalars, kReadsSource, reads_source() and apply(), as
/// device/tilewright/epilogue/output_tile.cuh asks; without C it reads none. @pre op::validate(epilogue)
void write_epilogue(SourceWriter& out, const op::Epilogue& epilogue, bool has_c);

}  // namespace tilewright::lower::cuda
