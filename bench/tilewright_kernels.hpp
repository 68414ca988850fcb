// Tilewright's kernels for a problem, as contenders.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "contender.hpp"
#include "operand_sets.hpp"
#include "tilewright/engine/engine.hpp"

namespace tilewright::bench {

/// The kernels of Tilewright that are measured.
struct KernelChoice {
  int most = 1;  // this many of the ranking's first; 0: all
  /// Further designs, which are measured if they can compute the problem and the ranking does not have them.
  std::span<const plan::FlatDesign> designs = {};
};

/// Kernels for a problem: the chosen ones of the ranking, in its order, then those of KernelChoice::designs.
struct FoundKernels {
  std::vector<engine::RankedKernel> kernels;
  int found = 0;  // number of kernels that can compute the problem, including those that were not chosen
};

/// Finds kernels whose name contains the problem's `kernel`. The addresses of `call` matter only by their alignment.
/// Refused if the library has no such kernel for the problem.
Result<FoundKernels> find_kernels(const engine::Engine& engine, const op::Gemm& call, const std::string& wanted,
                                  const KernelChoice& choice);

/// Addresses with the alignment of all memory of OperandSets, to find kernels before there is memory.
Addresses placeholder_addresses();

/// A kernel that cannot be measured.
struct FailedKernel {
  std::string name;
  std::string reason;
};

struct OurKernels {
  std::vector<Contender> contenders;
  std::vector<engine::RankedKernel> kernels;  // of each contender
  std::vector<FailedKernel> failed;           // do not compile or load, although they are not the first
  int found = 0;                              // FoundKernels::found
};

/// The chosen kernels, compiled and prepared for every operand set. Each contender is named "tilewright". Refused if
/// the library has no such kernel for the problem. @throws CompileError, DriverError for the first of the ranking
Result<OurKernels> tilewright_contenders(engine::Engine& engine, const Problem& problem, const OperandSets& sets,
                                         const KernelChoice& choice);

}  // namespace tilewright::bench
