// The classes of problems by which the Hopper GEMM is judged, and what is asked of each.
#pragma once

#include <span>
#include <string_view>

namespace tilewright::bench {

/// Ratios are cuBLASLt's time, by its heuristic's choice, to ours, by our ranking's choice.
struct ProblemClass {
  std::string_view name;   // as problem files write it
  std::string_view title;  // as tables write it
  double asked_geomean;    // of the ratios of its cases, at least
  double asked_least;      // no case below
};

std::span<const ProblemClass> problem_classes();

/// Null when no class has that name.
const ProblemClass* find_problem_class(std::string_view name);

/// Asked of the geometric mean over the cases of all classes.
inline constexpr double kAskedOfTheSuite = 1.12;

}  // namespace tilewright::bench
