// The classes of problems by which the Hopper GEMM is scored, with the target of each.
#pragma once

#include <span>
#include <string_view>

namespace tilewright::bench {

/// A ratio is the time of cuBLASLt's heuristic choice divided by the time of Tilewright's best-ranked kernel.
struct ProblemClass {
  std::string_view name;   // in problem files
  std::string_view title;  // in tables
  double target_geomean;   // the geometric mean of the ratios of its cases should be at least this
  double target_min;       // the ratio of every case should be at least this
};

std::span<const ProblemClass> problem_classes();

/// Null if no class has this name.
const ProblemClass* find_problem_class(std::string_view name);

/// The target for the geometric mean over the cases of all classes.
inline constexpr double kSuiteTarget = 1.12;

}  // namespace tilewright::bench
