// Finds out whether cuBLASLt or the harness is at fault when cuBLASLt's result is wrong.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cublaslt.hpp"
#include "verification.hpp"

namespace tilewright::bench {

/// Another run of an algorithm whose result was wrong.
struct Recheck {
  enum class Where {
    same_memory,        // the same call again
    fresh_memory,       // the same algorithm, with other operands in other allocations
    without_workspace,  // the algorithm that the heuristic chooses first without a workspace, on the same fresh memory
  };
  Where where;
  std::string algorithm;
  Verdict verdict;
  bool is_rounding = false;  // the errors are those of partial sums that are rounded to the type of D
};

/// "in fresh memory, algorithm 0 ...: wrong, D[2800,1134] is 3, ..."
std::string describe(const Recheck& recheck);

/// What follows from the rechecks.
std::string conclusion(std::span<const Recheck> rechecks);

/// Runs the heuristic's first algorithm again. Without an algorithm that needs no workspace, that recheck is missing.
std::vector<Recheck> recheck_cublaslt(CublasLt& cublaslt, std::shared_ptr<runtime::CudaDevice> device,
                                      const Problem& problem, const OperandSets& sets, RandomBlocks& random,
                                      std::uint64_t seed);

}  // namespace tilewright::bench
