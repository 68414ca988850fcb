// cuBLASLt's product followed by a separate kernel for the epilogue, the baseline for fused epilogues.
#pragma once

#include <vector>

#include "contender.hpp"
#include "operand_sets.hpp"
#include "tilewright/engine/engine.hpp"

namespace tilewright::bench {

/// Adds an ElementwisePass to each of `products`, which must write the product to stored_product() of every set. The
/// two are enqueued as one call. Refused if ElementwisePass does not support the problem.
/// @throws CompileError, ToolchainNotFound, DriverError
Result<std::vector<Contender>> with_separate_epilogue(engine::Engine& engine, const Problem& problem,
                                                      const OperandSets& sets, std::vector<Contender> products);

}  // namespace tilewright::bench
