// cuBLASLt's product with a kernel for the epilogue after it: what fusing an epilogue saves.
#pragma once

#include <vector>

#include "contender.hpp"
#include "operand_sets.hpp"
#include "tilewright/engine/engine.hpp"

namespace tilewright::bench {

/// Each of `products`, which leave the product at stored_product() of every set, followed by one ElementwisePass: both
/// are enqueued as one call. Refused where the pass does not fit the problem.
/// @throws CompileError, ToolchainNotFound, DriverError
Result<std::vector<Contender>> with_separate_epilogue(engine::Engine& engine, const Problem& problem,
                                                      const OperandSets& sets, std::vector<Contender> products);

}  // namespace tilewright::bench
