// The result of one problem.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"
#include "problem.hpp"
#include "telemetry.hpp"
#include "tilewright_kernels.hpp"
#include "verify.hpp"

namespace tilewright::bench {

struct Row {
  std::string contender;
  std::string detail;
  Verdict verdict;
  Timing timing;  // empty if the result was wrong
};

struct Outcome {
  Problem problem;
  int operand_sets = 0;
  std::vector<Row> rows;
  int kernels = 0;          // number of Tilewright's kernels that can compute the problem
  int candidates = 0;       // how many of them were measured
  std::string no_kernel;    // the reason why Tilewright has no row; empty if it has one
  std::string no_cublaslt;  // the reason why cuBLASLt has no row; empty if it has one
  // For a problem with an epilogue: why there is no row for Tilewright's plain product, for cuBLASLt's fused epilogue,
  // or for cuBLASLt's product followed by a separate kernel.
  std::string no_plain, no_fused, no_separate;
  // If the result of cuBLASLt's heuristic choice is wrong: what was found out about it, and what follows.
  std::vector<std::string> rechecks;
  std::string conclusion;
  std::vector<FailedKernel> failed_kernels;
  std::string failure;  // the reason why the problem could not be measured; empty if it was
  Telemetry telemetry;
};

/// cuBLASLt's row with which ours is compared: its heuristic's choice. If the result of that is wrong, the fastest of
/// its algorithms with a correct result: "cublaslt_best", or else "cublaslt_correct". Null if there is none.
const Row* cublaslt_reference(const Outcome& outcome);

/// Why cublaslt_reference() is not the heuristic's choice; empty if it is, or if there is no reference.
std::string why_other_reference(const Outcome& outcome);

/// The first row of this contender, or null.
const Row* find_row(const Outcome& outcome, const std::string& contender);

/// The timing of that row if its result was correct, or null.
const Timing* find_timing(const Outcome& outcome, const std::string& contender);

/// 10^12 operations per second (TFLOP/s or TOP/s).
double tera_ops(const Problem& problem, double microseconds);

}  // namespace tilewright::bench
