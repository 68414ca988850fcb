// Computes geometric means, worst cases and regret.
#include "score.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string_view>

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
  if (cublaslt_reference(outcome) != nullptr) return "";
  const Row* wrong = find_row(outcome, "cublaslt");
  return wrong == nullptr ? outcome.no_cublaslt : "cuBLASLt is wrong: " + wrong->verdict.reason;
}

/// The smallest median of `chosen` and of the other correct rows with one of these names. Rows that ran the same kernel
/// as `chosen` are left out, because the two differ only by noise.
double best_us(const Outcome& outcome, const Row& chosen, std::initializer_list<std::string_view> names) {
  double best = chosen.timing.median_us;
  for (const Row& row : outcome.rows) {
    const bool is_named = std::ranges::find(names, row.contender) != names.end();
    if (is_named && row.verdict.right && row.detail != chosen.detail) best = std::min(best, row.timing.median_us);
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
    if (!one.substituted.empty()) ++score.substituted;
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
              .substituted = "",
              .regret = {}};
  result.regret = regret(outcome);
  const Timing* ours = find_timing(outcome, "tilewright");
  if (ours == nullptr || !result.missing.empty()) return result;
  const Row& reference = *cublaslt_reference(outcome);
  result.substituted = why_other_reference(outcome);
  result.ratio = reference.timing.median_us / ours->median_us;
  result.ratio_to_best =
      best_us(outcome, reference, {"cublaslt", "cublaslt_best", "cublaslt_correct"}) / ours->median_us;
  return result;
}

std::optional<double> regret(const Outcome& outcome) {
  const Row* ours = find_row(outcome, "tilewright");
  if (ours == nullptr || !ours->verdict.right) return {};
  if (outcome.candidates <= 1 && outcome.kernels != 1) return {};
  return ours->timing.median_us / best_us(outcome, *ours, {"tilewright", "tilewright_best"});
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
