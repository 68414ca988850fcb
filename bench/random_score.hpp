// Scores random problems: the ratio to cuBLASLt and the ranking's regret, by class and relative to targets.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outcome.hpp"

namespace tilewright::bench {

/// One problem. A ratio is the time of cuBLASLt's heuristic choice divided by the time of our ranking's choice. With an
/// epilogue, cuBLASLt's time is that of its own epilogue; if it has none, or its result is wrong, that of its product
/// followed by a separate kernel.
struct RandomCase {
  std::string id;  // the problem's title if it has no id
  std::string title;
  std::string random_class;  // of random_class.hpp
  bool has_aligned_rows = false;
  std::string missing;          // the reason why it has no ratio; empty if it has one
  bool lacks_cublaslt = false;  // cuBLASLt, and not Tilewright, is the reason
  std::string substituted;      // why cuBLASLt's heuristic choice is not the reference; empty if it is
  std::string wrong_kernels;    // our kernels, other than the first, that are wrong or do not compile, with the reasons
  double ratio = 0.0;
  double ours_us = 0.0, cublaslt_us = 0.0;
  std::string kernel, algorithm;  // Row::detail of both
  std::optional<double> regret;   // as Case::regret
};

RandomCase judge_random(const Outcome& outcome);

/// nullopt: no target.
struct RandomTargets {
  std::optional<double> geomean, fifth_percentile, least;      // of the ratios: at least
  std::optional<double> mean_regret, percentile_95_of_regret;  // at most
};

/// The score of a class, or of a group of problems that has targets. Members are nullopt if no case has a value.
struct RandomScore {
  std::string name, title;
  RandomTargets targets;
  int cases = 0;
  int missing = 0;                 // cases without a ratio
  int lacks_cublaslt = 0;          // how many of them for lack of cuBLASLt
  int with_wrong_kernels = 0;      // cases that have RandomCase::wrong_kernels
  int substituted = 0;             // cases with another reference than cuBLASLt's heuristic choice
  int below_09 = 0, below_08 = 0;  // ratios below 0.9, and below 0.8
  std::optional<double> geomean, fifth_percentile, least;
  std::string least_id;
  int regrets = 0;  // cases whose regret is known
  std::optional<double> mean_regret, percentile_95_of_regret, largest_regret;
  std::string largest_regret_id;

  double share_below_09() const { return share(below_09); }  // of the cases that have a ratio
  double share_below_08() const { return share(below_08); }
  /// Whether all targets are met, all our kernels are right, and no case is missing for a reason other than cuBLASLt.
  bool is_met() const;

 private:
  double share(int count) const { return cases == missing ? 0.0 : static_cast<double>(count) / (cases - missing); }
};

/// The groups that have targets: all problems, those with aligned rows, those of the class odd_rows, f32 and f64.
/// Groups without cases are left out.
std::vector<RandomScore> score_random_groups(std::span<const RandomCase> cases);

/// One score per class that has cases, in the order of random_classes(). Classes have no targets.
std::vector<RandomScore> score_random_classes(std::span<const RandomCase> cases);

/// The cases with the smallest ratios, the smallest first.
std::vector<RandomCase> worst(std::span<const RandomCase> cases, std::size_t most);

/// The smallest value that is at least as large as `percent` percent of the values. @pre at least one value
double percentile(std::vector<double> values, double percent);

}  // namespace tilewright::bench
