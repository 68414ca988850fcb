#include "tilewright/profile/formats.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/profile/check_profile.hpp"

namespace tilewright::profile {
namespace {

using Json = nlohmann::ordered_json;

Json parse_profile(std::string_view text) {
  check_profile(text);
  return Json::parse(text);
}

/// A number with the digits that a reader needs; "" for null.
std::string number(const Json& value, int digits = 2) {
  if (value.is_null()) return "";
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  return fmt::format("{:.{}f}", value.get<double>(), digits);
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char each : text) quoted += each == '"' ? std::string("\"\"") : std::string(1, each);
  return quoted + "\"";
}

std::string xml(const std::string& text) {
  std::string escaped;
  for (const char each : text) {
    switch (each) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(each) < ' ' ? ' ' : each;
    }
  }
  return escaped;
}

/// The kernels of a problem, and then its peers as entries of the same form.
std::vector<Json> entries_of(const Json& problem) {
  std::vector<Json> entries(problem["kernels"].begin(), problem["kernels"].end());
  for (Json peer : problem.value("peers", Json::array())) {
    peer["kernel"] = "peer " + peer.value("peer", "");
    entries.push_back(std::move(peer));
  }
  return entries;
}

}  // namespace

std::string to_table(std::string_view text) try {
  const Json profile = parse_profile(text);
  std::string table = fmt::format("device    {}\n", profile["device"].get<std::string>());
  if (profile.value("is_emulated", false))
    table += "times     none: the emulator counts and verifies; predictions are for the target's GPU\n";
  if (!profile.value("is_complete", true)) table += "note      interrupted: some problems are missing\n";
  table += fmt::format("{:>11} {:>11} {:>9} {:>8} {:>8}  {:<12} {}\n", "predicted us", "median us", "TFLOP/s", "GB/s",
                       "of peak", "outcome", "kernel");
  for (const Json& problem : profile["problems"]) {
    table += problem["problem"].get<std::string>() + "\n";
    if (problem["kernels"].empty()) table += fmt::format("{:>65} no kernel\n", "");
    for (const Json& kernel : entries_of(problem)) {
      const Json times = kernel.value("times", Json());
      const auto of_times = [&](const char* field) { return times.is_null() ? Json() : times.value(field, Json()); };
      const Json bound = problem.value("bound_us", Json());
      std::string share;
      if (!times.is_null() && !bound.is_null())
        share = fmt::format("{:.0f} %", 100.0 * bound.get<double>() / of_times("median_us").get<double>());
      std::string reason = kernel.value("reason", "");
      if (const Json ratio = kernel.value("ratio", Json()); ratio.is_number())
        reason = fmt::format("{:.3f} times the time of Tilewright{}{}", ratio.get<double>(), reason.empty() ? "" : ", ",
                             reason);
      table += fmt::format(
          "{:>12} {:>11} {:>9} {:>8} {:>8}  {:<12} {}{}{}\n", number(kernel.value("predicted_us", Json())),
          number(of_times("median_us")), number(of_times("tflops"), 1), number(of_times("gbytes_per_s"), 0), share,
          kernel.value("disposition", ""), kernel["kernel"].get<std::string>(), reason.empty() ? "" : ": ", reason);
    }
  }
  return table;
} catch (const Json::exception& error) {
  throw InvalidArgument(fmt::format("this is no profile: {}", error.what()));
}

std::string to_csv(std::string_view text) try {
  const Json profile = parse_profile(text);
  static constexpr std::array kOfProblem{"operation", "m", "n", "k", "batch", "flops", "bytes", "bound_us", "problem"};
  static constexpr std::array kOfKernel{"kernel",     "provider",    "design",     "disposition",     "predicted_us",
                                        "registers",  "spill_bytes", "smem_bytes", "workspace_bytes", "l2_bytes",
                                        "compile_ms", "occupancy",   "reason"};
  static constexpr std::array kOfTimes{"samples", "median_us", "p05_us", "p95_us", "tflops", "gbytes_per_s"};
  static constexpr std::array kOfCounts{"instructions",    "global_bytes",      "global_sectors",
                                        "shared_requests", "shared_wavefronts", "bank_conflicts",
                                        "bulk_load_bytes", "bulk_store_bytes",  "matrix_flops"};
  std::string csv =
      fmt::format("device,{},{},{}", fmt::join(kOfProblem, ","), fmt::join(kOfKernel, ","), fmt::join(kOfTimes, ","));
  for (const char* const name : kOfCounts) csv += fmt::format(",emulated_{}", name);
  csv += '\n';
  const auto field = [](const Json& object, const char* name) {
    const Json value = object.is_object() ? object.value(name, Json()) : Json();
    return csv_field(value.is_string() ? value.get<std::string>() : number(value, 3));
  };
  for (const Json& problem : profile["problems"]) {
    for (const Json& kernel : entries_of(problem)) {
      std::vector<std::string> fields{csv_field(profile["device"].get<std::string>())};
      for (const char* const name : kOfProblem) fields.push_back(field(problem, name));
      for (const char* const name : kOfKernel) fields.push_back(field(kernel, name));
      for (const char* const name : kOfTimes) fields.push_back(field(kernel.value("times", Json()), name));
      const Json counts = kernel.value("counts", Json());
      for (const char* const name : kOfCounts) {
        if (!counts.is_object()) {
          fields.emplace_back();
          continue;
        }
        const Json total = counts.value("total", Json::object());
        fields.push_back(total.contains(name) ? field(total, name) : "0");
      }
      csv += fmt::format("{}\n", fmt::join(fields, ","));
    }
  }
  return csv;
} catch (const Json::exception& error) {
  throw InvalidArgument(fmt::format("this is no profile: {}", error.what()));
}

std::string to_junit(std::string_view text) try {
  const Json profile = parse_profile(text);
  int tests = 0, failures = 0, skipped = 0;
  std::string cases;
  for (const Json& problem : profile["problems"]) {
    const std::string classname = xml(problem["problem"].get<std::string>());
    const auto add = [&](const std::string& name, double seconds, const std::string& inside) {
      ++tests;
      cases += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\"", classname, xml(name), seconds);
      cases += inside.empty() ? "/>\n" : ">" + inside + "</testcase>\n";
    };
    if (problem["kernels"].empty()) {
      ++skipped;
      add("no kernel", 0.0, "<skipped message=\"no kernel was profiled\"/>");
    }
    for (const Json& kernel : entries_of(problem)) {
      const std::string disposition = kernel.value("disposition", ""), reason = xml(kernel.value("reason", ""));
      const Json times = kernel.value("times", Json());
      const double seconds = times.is_null() ? 0.0 : times.value("median_us", 0.0) * 1e-6;
      std::string inside;
      if (disposition == "wrong" || disposition == "failed") {
        ++failures;
        inside = fmt::format("<failure type=\"{}\" message=\"{}\"/>", disposition, reason);
      } else if (disposition == "not_run") {
        ++skipped;
        inside = fmt::format("<skipped message=\"{}\"/>", reason);
      }
      add(kernel["kernel"].get<std::string>(), seconds, inside);
    }
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"tilewright profile\" hostname=\"{}\" tests=\"{}\" "
      "failures=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
      xml(profile["device"].get<std::string>()), tests, failures, skipped, cases);
} catch (const Json::exception& error) {
  throw InvalidArgument(fmt::format("this is no profile: {}", error.what()));
}

}  // namespace tilewright::profile
