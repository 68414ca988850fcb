// How we stand: each case against cuBLASLt, each class and the suite against what is asked of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outcome.hpp"

namespace tilewright::bench {

/// One problem, as its class counts it.
struct Case {
  std::string id;              // the problem's title where it has no id
  std::string problem_class;   // empty: judged by none
  std::string missing;         // why it has no ratio; empty when it has
  double ratio = 0.0;          // time of cuBLASLt's heuristic choice / time of our ranking's choice
  double ratio_to_best = 0.0;  // time of the best cuBLASLt algorithm / time of our ranking's choice
  /// Time of our ranking's choice / time of the best of our kernels that were measured: 1 or more. None where other
  /// kernels were there and none was measured.
  std::optional<double> regret;
};

Case judge(const Outcome& outcome);

/// The cases of a class, or of the suite.
struct Score {
  std::string name;
  std::string title;
  int cases = 0;
  int missing = 0;  // of them
  std::optional<double> asked_geomean, asked_least;

  // Over the cases that have a ratio; nothing without one.
  std::optional<double> geomean, geomean_to_best, least;
  std::string least_id;

  // Over the cases whose regret is known.
  std::optional<double> mean_regret, most_regret;
  std::string most_regret_id;

  /// All that is asked, with no case missing.
  bool is_met() const;
};

/// @pre not empty, all above 0
double geomean(std::span<const double> values);

/// One score a class that has cases, in the order of problem_classes().
std::vector<Score> score_classes(std::span<const Case> cases);

/// Over the cases of all classes.
Score score_suite(std::span<const Case> cases);

}  // namespace tilewright::bench
