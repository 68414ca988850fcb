// Computes the ratios and their geometric means.
#include "epilogue_score.hpp"

#include <algorithm>

#include "score.hpp"

namespace tilewright::bench {
namespace {

/// Time of `contender` / time of `reference`; nullopt if one of them was not measured.
std::optional<double> times(const Outcome& outcome, const std::string& contender, const std::string& reference) {
  const Timing* numerator = find_timing(outcome, contender);
  const Timing* denominator = find_timing(outcome, reference);
  if (numerator == nullptr || denominator == nullptr) return {};
  return numerator->median_us / denominator->median_us;
}

/// The lesser of the ratios of a ranking's first and of its best measured choice; if one is missing, the other.
std::optional<double> lesser(std::optional<double> first, std::optional<double> best) {
  if (!first || !best) return first ? first : best;
  return std::min(*first, *best);
}

std::string why_missing(const Outcome& outcome) {
  if (!outcome.failure.empty()) return "failed: " + outcome.failure;
  const Row* ours = find_row(outcome, "tilewright");
  if (ours == nullptr) return outcome.no_kernel;
  return ours->verdict.right ? "" : "wrong: " + ours->verdict.reason;
}

}  // namespace

std::span<const NamedRatio> named_ratios() {
  static constexpr NamedRatio kRatios[] = {{"overhead", &EpilogueRatios::overhead},
                                           {"ratio_to_fused", &EpilogueRatios::to_fused},
                                           {"ratio_to_fused_best", &EpilogueRatios::to_fused_best},
                                           {"ratio_to_separate", &EpilogueRatios::to_separate},
                                           {"ratio_to_separate_best", &EpilogueRatios::to_separate_best}};
  return kRatios;
}

EpilogueMeasurement judge_epilogue(const Outcome& outcome) {
  const Problem& problem = outcome.problem;
  EpilogueMeasurement one{.id = problem.id.empty() ? title(problem) : problem.id,
                          .missing = why_missing(outcome),
                          .epilogue = std::string(problem.epilogue->name),
                          .ratios = {}};
  one.ratios.overhead = times(outcome, "tilewright", "tilewright_plain");
  one.ratios.to_fused = times(outcome, "cublaslt_fused", "tilewright");
  one.ratios.to_fused_best = lesser(one.ratios.to_fused, times(outcome, "cublaslt_fused_best", "tilewright"));
  one.ratios.to_separate = times(outcome, "cublaslt_separate", "tilewright");
  one.ratios.to_separate_best = lesser(one.ratios.to_separate, times(outcome, "cublaslt_separate_best", "tilewright"));
  return one;
}

std::vector<EpilogueScore> score_epilogues(std::span<const EpilogueMeasurement> measurements) {
  std::vector<EpilogueScore> scores;
  for (const EpilogueCase& epilogue : epilogue_cases()) {
    EpilogueScore score{.epilogue = std::string(epilogue.name), .geomeans = {}};
    for (const EpilogueMeasurement& one : measurements) {
      if (one.epilogue != epilogue.name) continue;
      ++score.cases;
      if (!one.missing.empty()) ++score.missing;
    }
    if (score.cases == 0) continue;
    for (const NamedRatio& named : named_ratios()) {
      std::vector<double> ratios;
      for (const EpilogueMeasurement& one : measurements) {
        const std::optional<double>& ratio = one.ratios.*named.ratio;
        if (one.epilogue == epilogue.name && ratio) ratios.push_back(*ratio);
      }
      if (!ratios.empty()) score.geomeans.*named.ratio = geomean(ratios);
    }
    scores.push_back(std::move(score));
  }
  return scores;
}

}  // namespace tilewright::bench
