// Table and JSON.
#include "report.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tilewright/base/error.hpp"

namespace tilewright::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kReference = "cublaslt";

/// How many times as fast as the heuristic's choice; 0 when that was not measured.
double ratio(const ProblemReport& report, const Timing& timing) {
  const Timing* reference = find_timing(report, kReference);
  return reference == nullptr ? 0.0 : reference->median_us / timing.median_us;
}

Json to_json(const ProblemReport& report, const Row& row) {
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
  json["least_us"] = row.timing.least_us;
  json["most_us"] = row.timing.most_us;
  json["samples"] = row.timing.samples;
  json["tera_ops"] = tera_ops(report.problem, row.timing.median_us);
  json["ratio_to_cublaslt"] = ratio(report, row.timing);
  return json;
}

Json to_json(const Telemetry& telemetry) {
  if (telemetry.samples == 0) return nullptr;
  return {{"samples", telemetry.samples},
          {"sm_clock_mhz_median", telemetry.sm_clock_mhz_median},
          {"sm_clock_mhz_least", telemetry.sm_clock_mhz_least},
          {"power_w_median", telemetry.power_w_median},
          {"power_w_most", telemetry.power_w_most},
          {"temperature_c_most", telemetry.temperature_c_most}};
}

Json to_json(const ProblemReport& report) {
  Json rows = Json::array();
  for (const Row& row : report.rows) rows.push_back(to_json(report, row));
  return {{"problem", report.problem.line},
          {"title", title(report.problem)},
          {"operand_sets", report.operand_sets},
          {"rows", rows},
          {"notes", report.notes},
          {"failure", report.failure},
          {"telemetry", to_json(report.telemetry)}};
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

double tera_ops(const Problem& problem, double microseconds) { return 1e-6 * operations(problem) / microseconds; }

const Timing* find_timing(const ProblemReport& report, const std::string& contender) {
  for (const Row& row : report.rows) {
    if (row.contender == contender && row.verdict.right) return &row.timing;
  }
  return nullptr;
}

void print_setting(const Setting& setting) {
  fmt::print("{}, {} SMs, driver {}, CUDA {}, cuBLASLt {}, {}\n", setting.gpu, setting.sm_count,
             setting.kernel_driver.empty() ? "unknown" : setting.kernel_driver, setting.cuda_driver,
             setting.cublaslt.empty() ? "none" : setting.cublaslt, setting.compiler);
  fmt::print("medians of GPU time, interleaved call by call, cold L2, random operands; ratio is to cublaslt\n");
}

void print_problem(const ProblemReport& report) {
  fmt::print("\n{}  ({} operand sets)\n", title(report.problem), report.operand_sets);
  fmt::print("  {:<16} {:>10} {:>8} {:>9} {:>7} {:>10}  {}\n", "contender", "median us", "MAD", "Tops/s", "ratio",
             "max error", "detail");
  for (const Row& row : report.rows) {
    if (!row.verdict.right) {
      fmt::print("  {:<16} WRONG: {}  {}\n", row.contender, row.verdict.reason, row.detail);
      continue;
    }
    fmt::print("  {:<16} {:>10.2f} {:>8.2f} {:>9.1f} {:>7.3f} {:>10.3g}  {}\n", row.contender, row.timing.median_us,
               row.timing.mad_us, tera_ops(report.problem, row.timing.median_us), ratio(report, row.timing),
               row.verdict.max_error, row.detail);
  }
  if (!report.failure.empty()) fmt::print("  FAILED: {}\n", report.failure);
  for (const std::string& note : report.notes) fmt::print("  {}\n", note);
  if (report.telemetry.samples != 0) {
    fmt::print("  SM clock {:.0f} MHz (least {:.0f}), power {:.0f} W (most {:.0f}), at most {:.0f} C\n",
               report.telemetry.sm_clock_mhz_median, report.telemetry.sm_clock_mhz_least,
               report.telemetry.power_w_median, report.telemetry.power_w_most, report.telemetry.temperature_c_most);
  }
  std::fflush(stdout);
}

void write_json(const std::string& path, const Setting& setting, const std::vector<ProblemReport>& reports) {
  Json problems = Json::array();
  for (const ProblemReport& report : reports) problems.push_back(to_json(report));
  std::ofstream file(path);
  file << Json{{"setting", to_json(setting)}, {"problems", problems}}.dump(2) << '\n';
  if (!file.flush()) throw Error(fmt::format("cannot write {}", path));
}

}  // namespace tilewright::bench
