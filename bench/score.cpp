// Computes geometric means, worst cases and regret.
#include "score.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "problem_class.hpp"
#include "tilewright/base/error.hpp"

namespace tilewright::bench {
namespace {

/// The reason why there is no ratio; empty if there is one.
std::string why_missing(const Outcome& outcome) {
  if (!outcome.failure.empty()) return "failed: " + outcome.failure;
  const Row* ours = find_row(outcome, "tilewright");
  if (ours == nullptr) return outcome.no_kernel;
  if (!ours->verdict.right) return "wrong: " + ours->verdict.reason;
  const Row* reference = find_row(outcome, "cublaslt");
  if (reference == nullptr) return outcome.no_cublaslt;
  if (!reference->verdict.right) return "cuBLASLt is wrong: " + reference->verdict.reason;
  return "";
}

/// The smallest median of the correct rows whose name begins with the prefix. Rows that ran the same kernel as the
/// ranking's choice are left out, because the two differ only by noise.
double best_us(const Outcome& outcome, const std::string& name) {
  const Row& chosen = *find_row(outcome, name);
  double best = chosen.timing.median_us;
  for (const Row& row : outcome.rows) {
    if (!row.contender.starts_with(name) || !row.verdict.right || row.detail == chosen.detail) continue;
    best = std::min(best, row.timing.median_us);
  }
  return best;
}

Score score(std::span<const Case> cases) {
  Score score;
  std::vector<double> ratios, ratios_to_best, regrets;
  for (const Case& one : cases) {
    ++score.cases;
    if (one.regret) {
      regrets.push_back(*one.regret);
      if (one.regret > score.max_regret) {
        score.max_regret = one.regret;
        score.max_regret_id = one.id;
      }
    }
    if (!one.missing.empty()) {
      ++score.missing;
      continue;
    }
    ratios.push_back(one.ratio);
    ratios_to_best.push_back(one.ratio_to_best);
    if (!score.min || one.ratio < *score.min) {
      score.min = one.ratio;
      score.min_id = one.id;
    }
  }
  if (!ratios.empty()) score.geomean = geomean(ratios);
  if (!ratios.empty()) score.geomean_to_best = geomean(ratios_to_best);
  if (!regrets.empty()) {
    double sum = 0.0;
    for (const double regret : regrets) sum += regret;
    score.mean_regret = sum / static_cast<double>(regrets.size());
  }
  return score;
}

}  // namespace

Case judge(const Outcome& outcome) {
  const Problem& problem = outcome.problem;
  Case result{.id = problem.id.empty() ? title(problem) : problem.id,
              .problem_class = problem.problem_class,
              .missing = why_missing(outcome),
              .regret = {}};
  const Timing* ours = find_timing(outcome, "tilewright");
  if (ours == nullptr) return result;
  if (outcome.candidates > 1 || outcome.kernels == 1) result.regret = ours->median_us / best_us(outcome, "tilewright");
  if (!result.missing.empty()) return result;
  result.ratio = find_timing(outcome, "cublaslt")->median_us / ours->median_us;
  result.ratio_to_best = best_us(outcome, "cublaslt") / ours->median_us;
  return result;
}

bool Score::is_met() const {
  const auto is_at_least = [](std::optional<double> found, std::optional<double> target) {
    return !target || (found && *found >= *target);
  };
  return cases != 0 && missing == 0 && is_at_least(geomean, target_geomean) && is_at_least(min, target_min);
}

double geomean(std::span<const double> values) {
  TILEWRIGHT_CHECK(!values.empty(), "geometric mean of no values");
  double sum = 0.0;
  for (const double value : values) {
    TILEWRIGHT_CHECK(value > 0.0, "geometric mean over the value {}, which is not positive", value);
    sum += std::log(value);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

std::vector<Score> score_classes(std::span<const Case> cases) {
  std::vector<Score> scores;
  for (const ProblemClass& problem_class : problem_classes()) {
    std::vector<Case> members;
    std::ranges::copy_if(cases, std::back_inserter(members),
                         [&](const Case& one) { return one.problem_class == problem_class.name; });
    if (members.empty()) continue;
    Score& added = scores.emplace_back(score(members));
    added.name = problem_class.name;
    added.title = problem_class.title;
    added.target_geomean = problem_class.target_geomean;
    added.target_min = problem_class.target_min;
  }
  return scores;
}

Score score_suite(std::span<const Case> cases) {
  std::vector<Case> judged;
  std::ranges::copy_if(cases, std::back_inserter(judged), [](const Case& one) { return !one.problem_class.empty(); });
  Score suite = score(judged);
  suite.name = "suite";
  suite.title = "whole suite";
  suite.target_geomean = kSuiteTarget;
  return suite;
}

}  // namespace tilewright::bench
