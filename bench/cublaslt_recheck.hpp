// Finds out whether cuBLASLt or the harness is at fault when cuBLASLt's result is wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "contender.hpp"
#include "operand_sets.hpp"
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

/// States the cause of the wrong result that the rechecks show, in one sentence.
std::string conclusion(std::span<const Recheck> rechecks);

/// The algorithms that the heuristic offers on the memory of `sets` with at most this much workspace, the first choice
/// first.
using Algorithms = std::function<std::vector<Contender>(const OperandSets& sets, std::size_t most_workspace_bytes)>;

/// Runs the heuristic's first algorithm again. Without an algorithm that needs no workspace, that recheck is missing.
std::vector<Recheck> recheck_cublaslt(const Algorithms& algorithms, const std::shared_ptr<runtime::Device>& device,
                                      const Problem& problem, const OperandSets& sets, RandomBlocks& random,
                                      std::uint64_t seed);

}  // namespace tilewright::bench
