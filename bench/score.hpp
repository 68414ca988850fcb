// Scores a run: each case relative to cuBLASLt, each class and the suite relative to their targets.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outcome.hpp"

namespace tilewright::bench {

/// One problem of a class.
struct Case {
  std::string id;                // the problem's title if it has no id
  std::string problem_class;     // empty: belongs to no class
  std::string missing;           // the reason why it has no ratio; empty if it has one
  std::string substituted = {};  // why the ratio is not to cuBLASLt's heuristic choice; see why_other_reference()
  double ratio = 0.0;            // time of cuBLASLt's heuristic choice / time of our ranking's choice
  double ratio_to_best = 0.0;    // time of the best cuBLASLt algorithm / time of our ranking's choice
  /// Time of our ranking's choice / time of the best of our measured kernels; at least 1. nullopt if there are other
  /// kernels and none of them was measured.
  std::optional<double> regret;
};

Case judge(const Outcome& outcome);

/// Case::regret, for problems with an epilogue too.
std::optional<double> regret(const Outcome& outcome);

/// The score of a class, or of the suite.
struct Score {
  std::string name;
  std::string title;
  int cases = 0;
  int missing = 0;      // cases without a ratio
  int substituted = 0;  // cases whose ratio is not to cuBLASLt's heuristic choice, because its result is wrong
  std::optional<double> target_geomean, target_min;

  // The geometric means and the smallest ratio over the cases that have a ratio; nullopt if none has.
  std::optional<double> geomean, geomean_to_best, min;
  std::string min_id;

  // The regret over the cases whose regret is known; nullopt if it is known for none.
  std::optional<double> mean_regret, max_regret;
  std::string max_regret_id;

  /// Whether all targets are met and no case is missing.
  bool is_met() const;
};

/// @pre at least one value, all positive
double geomean(std::span<const double> values);

/// One score per class that has cases, in the order of problem_classes().
std::vector<Score> score_classes(std::span<const Case> cases);

/// The score over the cases of all classes.
Score score_suite(std::span<const Case> cases);

}  // namespace tilewright::bench
