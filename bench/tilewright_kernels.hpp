// Tilewright's kernels for a problem, as contenders.
#pragma once

#include <string>
#include <vector>

#include "contender.hpp"
#include "operand_sets.hpp"
#include "tilewright/engine/engine.hpp"

namespace tilewright::bench {

struct OurKernels {
  std::vector<Contender> contenders;
  int found = 0;  // number of kernels that can compute the problem, including those that are not contenders
};

/// The `most` best-ranked kernels (0: all) whose name contains the problem's `kernel`, compiled and prepared for every
/// operand set. Each contender is named "tilewright". Refused if the library has no such kernel for the problem.
/// @throws CompileError, DriverError
Result<OurKernels> tilewright_contenders(engine::Engine& engine, const Problem& problem, const OperandSets& sets,
                                         int most);

}  // namespace tilewright::bench
