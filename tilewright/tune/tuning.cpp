#include "tilewright/tune/tuning.hpp"

#include <nlohmann/json.hpp>

namespace tilewright::tune {

std::string_view name(Fate fate) {
  switch (fate) {
    case Fate::winner:
      return "winner";
    case Fate::slower:
      return "slower";
    case Fate::sound:
      return "sound";
    case Fate::wrong:
      return "wrong";
    case Fate::strayed:
      return "strayed";
    case Fate::failed:
      return "failed";
    case Fate::skipped:
      return "skipped";
    case Fate::broke_device:
      return "broke_device";
    case Fate::not_reached:
      return "not_reached";
  }
  TILEWRIGHT_CHECK(false, "fate {}", static_cast<int>(fate));
}

std::string to_json(const TuningReport& report) {
  nlohmann::ordered_json json{{"device", report.device}, {"problem", report.problem}};
  json["winner"] = report.winner ? nlohmann::ordered_json(report.candidates[*report.winner].kernel) : nullptr;
  json["candidates"] = nlohmann::ordered_json::array();
  for (const CandidateReport& candidate : report.candidates) {
    nlohmann::ordered_json entry{{"kernel", candidate.kernel},
                                 {"estimate_us", candidate.estimate_us},
                                 {"fate", name(candidate.fate)},
                                 {"reason", candidate.reason}};
    if (candidate.samples != 0) entry["median_us"] = candidate.median_us;
    entry["samples"] = candidate.samples;
    json["candidates"].push_back(std::move(entry));
  }
  json["reference"] = report.reference;
  json["stopped"] = report.stopped;
  json["warnings"] = report.warnings;
  // Messages of a driver or a compiler may not be UTF-8.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tilewright::tune
