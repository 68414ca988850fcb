// The classes of problems by which the Hopper GEMM is scored, with the target of each.
#pragma once

#include <span>
#include <string_view>

namespace tilewright::bench {

/// A ratio is the time of cuBLASLt's heuristic choice divided by the time of Tilewright's best-ranked kernel.
struct ProblemClass {
  std::string_view name;   // in problem files
  std::string_view title;  // in tables
  double asked_geomean;    // target: least geometric mean of the ratios of its cases
  double asked_least;      // target: least ratio of every case
};

std::span<const ProblemClass> problem_classes();

/// Null if no class has this name.
const ProblemClass* find_problem_class(std::string_view name);

/// The target for the geometric mean over the cases of all classes.
inline constexpr double kAskedOfTheSuite = 1.12;

}  // namespace tilewright::bench
