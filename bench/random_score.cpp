#include "random_score.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "random_class.hpp"
#include "score.hpp"
#include "tilewright/base/error.hpp"

namespace tilewright::bench {
namespace {

struct Group {
  std::string_view name, title;
  RandomTargets targets;
  bool (*has)(const RandomCase&);
};

constexpr double kMeanRegret = 1.02, kPercentile95OfRegret = 1.08, kFifthPercentile = 0.93, kLeast = 0.80;

constexpr std::array<Group, 5> kGroups{{
    {"all",
     "all problems",
     {{}, kFifthPercentile, kLeast, kMeanRegret, kPercentile95OfRegret},
     [](const RandomCase&) { return true; }},
    {"aligned",
     "rows at multiples of 16 bytes",
     {1.05, kFifthPercentile, kLeast, kMeanRegret, kPercentile95OfRegret},
     [](const RandomCase& one) { return one.has_aligned_rows; }},
    {"odd_rows",
     "K-major rows at odd multiples of 16 bytes",
     {1.00, {}, {}, {}, {}},
     [](const RandomCase& one) { return one.random_class == "odd_rows"; }},
    {"f32", "f32", {0.97, {}, 0.93, {}, {}}, [](const RandomCase& one) { return one.random_class == "f32"; }},
    {"f64", "f64", {0.97, {}, 0.93, {}, {}}, [](const RandomCase& one) { return one.random_class == "f64"; }},
}};

/// cuBLASLt's row of a problem with an epilogue; null if there is none. Sets `substituted` if its own epilogue is
/// wrong.
const Row* epilogue_reference(const Outcome& outcome, std::string& substituted) {
  const Row* fused = find_row(outcome, "cublaslt_fused");
  if (fused != nullptr && fused->verdict.right) return fused;
  const Row* separate = find_row(outcome, "cublaslt_separate");
  if (separate == nullptr || !separate->verdict.right) return nullptr;
  if (fused != nullptr) substituted = "cublaslt_fused: " + fused->verdict.reason;
  return separate;
}

std::string why_no_cublaslt(const Outcome& outcome) {
  for (const char* name : {"cublaslt", "cublaslt_fused", "cublaslt_separate"}) {
    const Row* row = find_row(outcome, name);
    if (row != nullptr && !row->verdict.right) return "cuBLASLt is wrong: " + row->verdict.reason;
  }
  return outcome.no_cublaslt.empty() ? outcome.no_separate : outcome.no_cublaslt;
}

/// The reason why Tilewright has no time; empty if it has one.
std::string why_no_time(const Outcome& outcome) {
  if (!outcome.failure.empty()) return "failed: " + outcome.failure;
  const Row* ours = find_row(outcome, "tilewright");
  if (ours == nullptr) return outcome.no_kernel.empty() ? "not measured" : outcome.no_kernel;
  return ours->verdict.right ? "" : "wrong: " + ours->verdict.reason;
}

/// RandomCase::wrong_kernels
std::string wrong_kernels(const Outcome& outcome) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& reason) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, reason);
  };
  const Row* first = find_row(outcome, "tilewright");
  for (const Row& row : outcome.rows) {
    if (row.contender.starts_with("tilewright") && &row != first && !row.verdict.right)
      add(fmt::format("{} {}", row.contender, row.detail), row.verdict.reason);
  }
  for (const FailedKernel& failed : outcome.failed_kernels) add(failed.name, failed.reason);
  return text;
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

template <class Has>
RandomScore score(std::string_view name, std::string_view title, const RandomTargets& targets,
                  std::span<const RandomCase> cases, const Has& has) {
  RandomScore score;
  score.name = name;
  score.title = title;
  score.targets = targets;
  std::vector<double> ratios, regrets;
  for (const RandomCase& one : cases) {
    if (!has(one)) continue;
    ++score.cases;
    if (!one.wrong_kernels.empty()) ++score.with_wrong_kernels;
    if (one.regret) {
      regrets.push_back(*one.regret);
      if (one.regret > score.largest_regret) {
        score.largest_regret = one.regret;
        score.largest_regret_id = one.id;
      }
    }
    if (!one.missing.empty()) {
      ++score.missing;
      if (one.lacks_cublaslt) ++score.lacks_cublaslt;
      continue;
    }
    if (!one.substituted.empty()) ++score.substituted;
    ratios.push_back(one.ratio);
    if (one.ratio < 0.9) ++score.below_09;
    if (one.ratio < 0.8) ++score.below_08;
    if (!score.least || one.ratio < *score.least) {
      score.least = one.ratio;
      score.least_id = one.id;
    }
  }
  if (!ratios.empty()) {
    score.geomean = geomean(ratios);
    score.fifth_percentile = percentile(ratios, 5.0);
  }
  score.regrets = static_cast<int>(regrets.size());
  if (!regrets.empty()) {
    score.mean_regret = mean(regrets);
    score.percentile_95_of_regret = percentile(regrets, 95.0);
  }
  return score;
}

}  // namespace

RandomCase judge_random(const Outcome& outcome) {
  const Problem& problem = outcome.problem;
  RandomCase one;
  one.id = problem.id.empty() ? title(problem) : problem.id;
  one.title = title(problem);
  one.random_class = random_class(problem).name;
  one.has_aligned_rows = has_aligned_rows(problem);
  one.missing = why_no_time(outcome);
  one.wrong_kernels = wrong_kernels(outcome);
  one.regret = regret(outcome);
  if (!one.missing.empty()) return one;
  std::string substituted = why_other_reference(outcome);
  const Row* reference =
      problem.epilogue == nullptr ? cublaslt_reference(outcome) : epilogue_reference(outcome, substituted);
  const Row& ours = *find_row(outcome, "tilewright");
  one.ours_us = ours.timing.median_us;
  one.kernel = ours.detail;
  if (reference == nullptr) {
    one.missing = why_no_cublaslt(outcome);
    one.lacks_cublaslt = true;
    return one;
  }
  one.substituted = substituted;
  one.cublaslt_us = reference->timing.median_us;
  one.algorithm = reference->detail;
  one.ratio = one.cublaslt_us / one.ours_us;
  return one;
}

bool RandomScore::is_met() const {
  const auto is_at_least = [](std::optional<double> found, std::optional<double> target) {
    return !target || (found && *found >= *target);
  };
  const auto is_at_most = [](std::optional<double> found, std::optional<double> target) {
    return !target || (found && *found <= *target);
  };
  return missing == lacks_cublaslt && with_wrong_kernels == 0 && is_at_least(geomean, targets.geomean) &&
         is_at_least(fifth_percentile, targets.fifth_percentile) && is_at_least(least, targets.least) &&
         is_at_most(mean_regret, targets.mean_regret) &&
         is_at_most(percentile_95_of_regret, targets.percentile_95_of_regret);
}

std::vector<RandomScore> score_random_groups(std::span<const RandomCase> cases) {
  std::vector<RandomScore> scores;
  for (const Group& group : kGroups) {
    scores.push_back(score(group.name, group.title, group.targets, cases, group.has));
    if (scores.back().cases == 0) scores.pop_back();
  }
  return scores;
}

std::vector<RandomScore> score_random_classes(std::span<const RandomCase> cases) {
  std::vector<RandomScore> scores;
  for (const RandomClass& random_class : random_classes()) {
    scores.push_back(score(random_class.name, random_class.title, {}, cases,
                           [&](const RandomCase& one) { return one.random_class == random_class.name; }));
    if (scores.back().cases == 0) scores.pop_back();
  }
  return scores;
}

std::vector<RandomCase> worst(std::span<const RandomCase> cases, std::size_t most) {
  std::vector<RandomCase> found;
  std::ranges::copy_if(cases, std::back_inserter(found), [](const RandomCase& one) { return one.missing.empty(); });
  std::ranges::stable_sort(found, {}, &RandomCase::ratio);
  found.resize(std::min(found.size(), most));
  return found;
}

double percentile(std::vector<double> values, double percent) {
  TILEWRIGHT_CHECK(!values.empty(), "percentile of no values");
  std::ranges::sort(values);
  const double rank = std::ceil(percent * static_cast<double>(values.size()) / 100.0);
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace tilewright::bench
