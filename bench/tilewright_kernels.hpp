// Our side of the comparison: the engine's kernels for a problem as contenders.
#pragma once

#include <string>
#include <vector>

#include "contender.hpp"
#include "operand_sets.hpp"
#include "tilewright/engine/engine.hpp"

namespace tilewright::bench {

struct OurKernels {
  std::vector<Contender> contenders;
  int found = 0;  // kernels that compute the problem, whether or not they are contenders
};

/// The best-ranked kernels, at most `most` of them (0: all), compiled and prepared on every operand set. Only those
/// whose name contains the problem's `kernel`. Each is named "tilewright". Refused, with the reason, where the library
/// has no kernel for the problem. @throws CompileError, DriverError
Result<OurKernels> tilewright_contenders(engine::Engine& engine, const Problem& problem, const OperandSets& sets,
                                         int most);

}  // namespace tilewright::bench
