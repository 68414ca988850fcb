// What was found for one problem.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"
#include "problem.hpp"
#include "telemetry.hpp"
#include "verify.hpp"

namespace tilewright::bench {

struct Row {
  std::string contender;
  std::string detail;
  Verdict verdict;
  Timing timing;  // empty when the result was wrong
};

struct Outcome {
  Problem problem;
  int operand_sets = 0;
  std::vector<Row> rows;
  int kernels = 0;          // of ours that compute the problem
  int candidates = 0;       // of those, how many were measured
  std::string no_kernel;    // why no row is ours
  std::string no_cublaslt;  // why no row is cuBLASLt's
  // Of a problem with an epilogue: why no row is our product alone, cuBLASLt's own epilogue, or its product with a
  // kernel after it.
  std::string no_plain, no_fused, no_separate;
  std::string failure;  // why the problem was given up; empty when it was not
  Telemetry telemetry;
};

/// The first row called `contender`, or null.
const Row* find_row(const Outcome& outcome, const std::string& contender);

/// The timing of that row if it was right, or null.
const Timing* find_timing(const Outcome& outcome, const std::string& contender);

/// 10^12 operations a second.
double tera_ops(const Problem& problem, double microseconds);

}  // namespace tilewright::bench
