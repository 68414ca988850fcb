// Prints the tables and writes the JSON file.
#include "report.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "epilogue_score.hpp"
#include "random_score.hpp"
#include "score.hpp"
#include "tilewright/base/error.hpp"

namespace tilewright::bench {
namespace {

using Json = nlohmann::ordered_json;

/// The contender that the ratios of rows refer to.
const char* reference(const Problem& problem) { return problem.epilogue == nullptr ? "cublaslt" : "cublaslt_separate"; }

/// JSON null if there is no value.
template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Time of the reference / time of the row; 0 if the reference was not measured.
double ratio(const Outcome& outcome, const Timing& timing) {
  const bool has_epilogue = outcome.problem.epilogue != nullptr;
  const Row* measured = has_epilogue ? find_row(outcome, reference(outcome.problem)) : cublaslt_reference(outcome);
  return measured == nullptr || !measured->verdict.right ? 0.0 : measured->timing.median_us / timing.median_us;
}

Json to_json(const Outcome& outcome, const Row& row) {
  Json json{{"contender", row.contender},
            {"detail", row.detail},
            {"right", row.verdict.right},
            {"max_error", row.verdict.max_error},
            {"mean_error", row.verdict.mean_error}};
  if (!row.verdict.right) {
    json["reason"] = row.verdict.reason;
    return json;
  }
  json["median_us"] = row.timing.median_us;
  json["mad_us"] = row.timing.mad_us;
  json["min_us"] = row.timing.least_us;
  json["max_us"] = row.timing.most_us;
  json["samples"] = row.timing.samples;
  json["tera_ops"] = tera_ops(outcome.problem, row.timing.median_us);
  json[fmt::format("ratio_to_{}", reference(outcome.problem))] = ratio(outcome, row.timing);
  return json;
}

Json to_json(const Telemetry& telemetry) {
  if (telemetry.samples == 0) return nullptr;
  return {{"samples", telemetry.samples},
          {"sm_clock_mhz_median", telemetry.sm_clock_mhz_median},
          {"sm_clock_mhz_min", telemetry.sm_clock_mhz_min},
          {"power_w_median", telemetry.power_w_median},
          {"power_w_max", telemetry.power_w_max},
          {"temperature_c_max", telemetry.temperature_c_max}};
}

Json to_json(const EpilogueRatios& ratios) {
  Json json = Json::object();
  for (const NamedRatio& named : named_ratios()) json[named.name] = optional_json(ratios.*named.ratio);
  return json;
}

/// The problem's ratios as a case of its class.
Json judged_as_case(const Outcome& outcome) {
  const Case one = judge(outcome);
  Json json{{"id", one.id},
            {"class", one.problem_class},
            {"problem", outcome.problem.line},
            {"title", title(outcome.problem)},
            {"missing", one.missing}};
  if (one.missing.empty()) {
    json["ratio_to_cublaslt"] = one.ratio;
    json["ratio_to_cublaslt_best"] = one.ratio_to_best;
    if (!one.substituted.empty()) json["substituted"] = one.substituted;
  }
  json["regret"] = optional_json(one.regret);
  return json;
}

/// The problem's ratios as a measurement of its epilogue.
Json judged_as_epilogue(const Outcome& outcome) {
  const EpilogueMeasurement one = judge_epilogue(outcome);
  Json json{{"id", one.id},
            {"class", ""},
            {"epilogue", one.epilogue},
            {"text", outcome.problem.epilogue->text},
            {"problem", outcome.problem.line},
            {"title", title(outcome.problem)},
            {"missing", one.missing}};
  json.update(to_json(one.ratios));
  json.update({{"no_plain", outcome.no_plain}, {"no_fused", outcome.no_fused}, {"no_separate", outcome.no_separate}});
  return json;
}

Json to_json(const Outcome& outcome) {
  Json rows = Json::array();
  for (const Row& row : outcome.rows) rows.push_back(to_json(outcome, row));
  Json json = outcome.problem.epilogue == nullptr ? judged_as_case(outcome) : judged_as_epilogue(outcome);
  json.update({{"kernels", outcome.kernels},
               {"candidates", outcome.candidates},
               {"operand_sets", outcome.operand_sets},
               {"rows", rows},
               {"no_cublaslt", outcome.no_cublaslt},
               {"telemetry", to_json(outcome.telemetry)}});
  if (!outcome.rechecks.empty()) {
    json["rechecks"] = outcome.rechecks;
    json["conclusion"] = outcome.conclusion;
  }
  for (const FailedKernel& failed : outcome.failed_kernels)
    json["failed_kernels"].push_back({{"name", failed.name}, {"reason", failed.reason}});
  return json;
}

Json to_json(const EpilogueScore& score) {
  return {{"name", score.epilogue},
          {"text", find_epilogue_case(score.epilogue)->text},
          {"cases", score.cases},
          {"missing", score.missing},
          {"geomean", to_json(score.geomeans)}};
}

Json to_json(const Score& score) {
  return {{"name", score.name},
          {"title", score.title},
          {"cases", score.cases},
          {"missing", score.missing},
          {"substituted", score.substituted},
          {"geomean", optional_json(score.geomean)},
          {"target_geomean", optional_json(score.target_geomean)},
          {"min", optional_json(score.min)},
          {"min_id", score.min_id},
          {"target_min", optional_json(score.target_min)},
          {"geomean_to_best", optional_json(score.geomean_to_best)},
          {"mean_regret", optional_json(score.mean_regret)},
          {"max_regret", optional_json(score.max_regret)},
          {"max_regret_id", score.max_regret_id},
          {"met", score.is_met()}};
}

Json to_json(const RandomCase& one) {
  Json json{{"id", one.id},
            {"title", one.title},
            {"class", one.random_class},
            {"has_aligned_rows", one.has_aligned_rows},
            {"missing", one.missing},
            {"substituted", one.substituted},
            {"wrong_kernels", one.wrong_kernels},
            {"regret", optional_json(one.regret)}};
  if (!one.missing.empty()) return json;
  json.update({{"ratio", one.ratio},
               {"ours_us", one.ours_us},
               {"cublaslt_us", one.cublaslt_us},
               {"kernel", one.kernel},
               {"algorithm", one.algorithm}});
  return json;
}

Json to_json(const RandomTargets& targets) {
  return {{"geomean", optional_json(targets.geomean)},
          {"fifth_percentile", optional_json(targets.fifth_percentile)},
          {"min", optional_json(targets.least)},
          {"mean_regret", optional_json(targets.mean_regret)},
          {"percentile_95_of_regret", optional_json(targets.percentile_95_of_regret)}};
}

Json to_json(const RandomScore& score) {
  return {{"name", score.name},
          {"title", score.title},
          {"targets", to_json(score.targets)},
          {"cases", score.cases},
          {"missing", score.missing},
          {"lacks_cublaslt", score.lacks_cublaslt},
          {"substituted", score.substituted},
          {"with_wrong_kernels", score.with_wrong_kernels},
          {"geomean", optional_json(score.geomean)},
          {"fifth_percentile", optional_json(score.fifth_percentile)},
          {"min", optional_json(score.least)},
          {"min_id", score.least_id},
          {"share_below_09", score.share_below_09()},
          {"share_below_08", score.share_below_08()},
          {"regrets", score.regrets},
          {"mean_regret", optional_json(score.mean_regret)},
          {"percentile_95_of_regret", optional_json(score.percentile_95_of_regret)},
          {"max_regret", optional_json(score.largest_regret)},
          {"max_regret_id", score.largest_regret_id},
          {"met", score.is_met()}};
}

template <class T>
Json to_json(const std::vector<T>& values) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(to_json(value));
  return json;
}

std::vector<RandomCase> judge_all_random(const std::vector<Outcome>& outcomes) {
  std::vector<RandomCase> cases;
  for (const Outcome& outcome : outcomes) cases.push_back(judge_random(outcome));
  return cases;
}

Json random_json(const std::vector<Outcome>& outcomes) {
  const std::vector<RandomCase> cases = judge_all_random(outcomes);
  return {{"groups", to_json(score_random_groups(cases))},
          {"classes", to_json(score_random_classes(cases))},
          {"cases", to_json(cases)}};
}

std::vector<Case> judge_all(const std::vector<Outcome>& outcomes) {
  std::vector<Case> cases;
  for (const Outcome& outcome : outcomes) {
    if (outcome.problem.epilogue == nullptr) cases.push_back(judge(outcome));
  }
  return cases;
}

std::vector<EpilogueMeasurement> judge_epilogues(const std::vector<Outcome>& outcomes) {
  std::vector<EpilogueMeasurement> measurements;
  for (const Outcome& outcome : outcomes) {
    if (outcome.problem.epilogue != nullptr) measurements.push_back(judge_epilogue(outcome));
  }
  return measurements;
}

std::string figure(const std::optional<double>& value) { return value ? fmt::format("{:.3f}", *value) : "-"; }

void print_random_score(const RandomScore& score, const std::string& met) {
  fmt::print("{:<42} {:>5} {:>7} {:>6}  {:>7} {:>6}  {:>6} {:<10} {:>5.1f}% {:>5.1f}%  {:>6} {:>6} {:>6} {:<10} {}\n",
             score.title, score.cases, score.missing, score.substituted, figure(score.geomean),
             figure(score.fifth_percentile), figure(score.least), score.least_id, 100.0 * score.share_below_09(),
             100.0 * score.share_below_08(), figure(score.mean_regret), figure(score.percentile_95_of_regret),
             figure(score.largest_regret), score.largest_regret_id, met);
}

/// Prints a line for each case whose ratio is not to cuBLASLt's heuristic choice.
template <class Cases>
void print_substitutions(const Cases& cases) {
  for (const auto& one : cases) {
    if (!one.substituted.empty())
      fmt::print("cuBLASLt's choice is wrong for {}, the ratio is to its fastest correct algorithm: {}\n", one.id,
                 one.substituted);
  }
}

void print_score(const Score& score) {
  fmt::print("{:<40} {:>5} {:>7}  {:>7} {:>6}  {:>6} {:>6}  {:<14} {:>7}  {:>6} {:>6}  {:<14} {}\n", score.title,
             score.cases, score.missing, figure(score.geomean), figure(score.target_geomean), figure(score.min),
             figure(score.target_min), score.min_id, figure(score.geomean_to_best), figure(score.mean_regret),
             figure(score.max_regret), score.max_regret_id, score.is_met() ? "met" : "NOT MET");
}

Json to_json(const Setting& setting) {
  return {{"date", setting.date},
          {"command", setting.command},
          {"gpu", setting.gpu},
          {"sm_count", setting.sm_count},
          {"l2_bytes", setting.l2_bytes},
          {"kernel_driver", setting.kernel_driver},
          {"cuda_driver", setting.cuda_driver},
          {"cublaslt", setting.cublaslt},
          {"compiler", setting.compiler}};
}

}  // namespace

void print_setting(const Setting& setting) {
  fmt::print("{}, {} SMs, driver {}, CUDA {}, cuBLASLt {}, {}\n", setting.gpu, setting.sm_count,
             setting.kernel_driver.empty() ? "unknown" : setting.kernel_driver, setting.cuda_driver,
             setting.cublaslt.empty() ? "none" : setting.cublaslt, setting.compiler);
  fmt::print(
      "medians of GPU time; calls are interleaved, L2 is cold, operands are random; ratio is the time of cublaslt, or "
      "with an epilogue of cublaslt_separate, divided by the row's time\n");
}

void print_outcome(const Outcome& outcome) {
  const std::string& id = outcome.problem.id;
  fmt::print("\n{}{}{}  ({} operand sets, {} of Tilewright's {} kernels)\n", id, id.empty() ? "" : "  ",
             title(outcome.problem), outcome.operand_sets, outcome.candidates, outcome.kernels);
  fmt::print("  {:<22} {:>10} {:>8} {:>9} {:>7} {:>10}  {}\n", "contender", "median us", "MAD", "Tops/s", "ratio",
             "max error", "detail");
  for (const Row& row : outcome.rows) {
    if (!row.verdict.right) {
      fmt::print("  {:<22} WRONG: {}  {}\n", row.contender, row.verdict.reason, row.detail);
      continue;
    }
    fmt::print("  {:<22} {:>10.2f} {:>8.2f} {:>9.1f} {:>7.3f} {:>10.3g}  {}\n", row.contender, row.timing.median_us,
               row.timing.mad_us, tera_ops(outcome.problem, row.timing.median_us), ratio(outcome, row.timing),
               row.verdict.max_error, row.detail);
  }
  for (const std::string& recheck : outcome.rechecks) fmt::print("  recheck of cublaslt: {}\n", recheck);
  if (!outcome.conclusion.empty()) fmt::print("  {}\n", outcome.conclusion);
  for (const FailedKernel& failed : outcome.failed_kernels) fmt::print("  FAILED {}: {}\n", failed.name, failed.reason);
  if (!outcome.failure.empty()) fmt::print("  FAILED: {}\n", outcome.failure);
  if (!outcome.no_kernel.empty()) fmt::print("  MISSING: {}\n", outcome.no_kernel);
  if (!outcome.no_cublaslt.empty()) fmt::print("  {}\n", outcome.no_cublaslt);
  if (!outcome.no_plain.empty()) fmt::print("  no tilewright_plain: {}\n", outcome.no_plain);
  if (!outcome.no_fused.empty()) fmt::print("  no cublaslt_fused: {}\n", outcome.no_fused);
  if (!outcome.no_separate.empty()) fmt::print("  no cublaslt_separate: {}\n", outcome.no_separate);
  if (outcome.telemetry.samples != 0) {
    fmt::print("  SM clock {:.0f} MHz (min {:.0f}), power {:.0f} W (max {:.0f}), max {:.0f} C\n",
               outcome.telemetry.sm_clock_mhz_median, outcome.telemetry.sm_clock_mhz_min,
               outcome.telemetry.power_w_median, outcome.telemetry.power_w_max, outcome.telemetry.temperature_c_max);
  }
  std::fflush(stdout);
}

void print_scores(const std::vector<Outcome>& outcomes) {
  const std::vector<Case> cases = judge_all(outcomes);
  const std::vector<Score> classes = score_classes(cases);
  if (classes.empty()) return;
  fmt::print(
      "\nSpeed of the best-ranked kernel relative to cuBLASLt's heuristic choice (to best: to cuBLASLt's best)\n");
  fmt::print("{:<40} {:>5} {:>7}  {:>7} {:>6}  {:>6} {:>6}  {:<14} {:>7}  {:>6} {:>6}  {:<14}\n", "class", "cases",
             "missing", "geomean", "target", "worst", "target", "case", "to best", "regret", "max", "case");
  for (const Score& score : classes) print_score(score);
  print_score(score_suite(cases));
  for (const Case& one : cases) {
    if (!one.missing.empty() && !one.problem_class.empty()) fmt::print("missing {}: {}\n", one.id, one.missing);
  }
  print_substitutions(cases);
  std::fflush(stdout);
}

void print_epilogue_scores(const std::vector<Outcome>& outcomes) {
  const std::vector<EpilogueMeasurement> measurements = judge_epilogues(outcomes);
  if (measurements.empty()) return;
  const auto print_line = [](const std::string& name, int cases, int missing, const EpilogueRatios& ratios) {
    fmt::print("{:<24} {:>5} {:>7}", name, cases, missing);
    for (const NamedRatio& named : named_ratios()) fmt::print("  {:>8}", figure(ratios.*named.ratio));
    fmt::print("\n");
  };
  fmt::print(
      "\nThe best-ranked kernel with its epilogue: its time divided by that of our plain product; then its speed "
      "relative "
      "to\n"
      "cuBLASLt's fused epilogue (heuristic choice, best) and to cuBLASLt's product followed by a separate kernel\n");
  fmt::print("{:<24} {:>5} {:>7}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}\n", "geomean", "cases", "missing", "overhead",
             "fused", "its best", "separate", "its best");
  for (const EpilogueScore& score : score_epilogues(measurements))
    print_line(score.epilogue, score.cases, score.missing, score.geomeans);
  fmt::print("\n");
  for (const EpilogueMeasurement& one : measurements) print_line(one.id, 1, one.missing.empty() ? 0 : 1, one.ratios);
  for (const EpilogueMeasurement& one : measurements) {
    if (!one.missing.empty()) fmt::print("missing {}: {}\n", one.id, one.missing);
  }
  std::fflush(stdout);
}

void print_random_scores(const std::vector<Outcome>& outcomes) {
  constexpr std::size_t kWorst = 10;
  const std::vector<RandomCase> cases = judge_all_random(outcomes);
  fmt::print(
      "\nRandom problems: speed of the best-ranked kernel relative to cuBLASLt's heuristic choice, and the ranking's "
      "regret\n");
  fmt::print("{:<42} {:>5} {:>7} {:>6}  {:>7} {:>6}  {:>6} {:<10} {:>6} {:>6}  {:>6} {:>6} {:>6} {:<10}\n", "group",
             "cases", "missing", "substd", "geomean", "5th %", "least", "case", "< 0.9", "< 0.8", "regret", "95th %",
             "max", "case");
  for (const RandomScore& score : score_random_groups(cases))
    print_random_score(score, score.is_met() ? "met" : "NOT MET");
  for (const RandomScore& score : score_random_classes(cases)) print_random_score(score, "");
  fmt::print("\nThe smallest ratios\n");
  for (const RandomCase& one : worst(cases, kWorst))
    fmt::print("{:<10} {:<9} {:>6.3f}  {}\n  {:>10.2f} us  {}\n  {:>10.2f} us  {}\n", one.id, one.random_class,
               one.ratio, one.title, one.ours_us, one.kernel, one.cublaslt_us, one.algorithm);
  for (const RandomCase& one : cases) {
    if (!one.missing.empty()) fmt::print("missing {} ({}): {}\n", one.id, one.title, one.missing);
    if (!one.wrong_kernels.empty()) fmt::print("wrong in {} ({}): {}\n", one.id, one.title, one.wrong_kernels);
  }
  print_substitutions(cases);
  std::fflush(stdout);
}

void write_json(const std::string& path, const Setting& setting, const std::vector<Outcome>& outcomes, bool as_random) {
  Json problems = Json::array();
  for (const Outcome& outcome : outcomes) problems.push_back(to_json(outcome));
  const std::vector<Case> cases = judge_all(outcomes);
  Json classes = Json::array();
  for (const Score& score : score_classes(cases)) classes.push_back(to_json(score));
  Json epilogues = Json::array();
  for (const EpilogueScore& score : score_epilogues(judge_epilogues(outcomes))) epilogues.push_back(to_json(score));
  Json all{{"setting", to_json(setting)},
           {"classes", classes},
           {"suite", to_json(score_suite(cases))},
           {"epilogues", epilogues},
           {"problems", problems}};
  if (as_random) all["random"] = random_json(outcomes);
  std::ofstream file(path);
  file << all.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  if (!file.flush()) throw Error(fmt::format("cannot write {}", path));
}

}  // namespace tilewright::bench
