#include "tilewright/tune/tuning.hpp"

#include <nlohmann/json.hpp>

namespace tilewright::tune {

std::string_view name(CandidateStatus status) {
  switch (status) {
    case CandidateStatus::winner:
      return "winner";
    case CandidateStatus::slower:
      return "slower";
    case CandidateStatus::sound:
      return "sound";
    case CandidateStatus::wrong:
      return "wrong";
    case CandidateStatus::out_of_bounds:
      return "out_of_bounds";
    case CandidateStatus::broke_rule:
      return "broke_rule";
    case CandidateStatus::failed:
      return "failed";
    case CandidateStatus::skipped:
      return "skipped";
    case CandidateStatus::broke_device:
      return "broke_device";
    case CandidateStatus::not_reached:
      return "not_reached";
  }
  TILEWRIGHT_CHECK(false, "status {}", static_cast<int>(status));
}

bool is_wrong(CandidateStatus status) {
  return status == CandidateStatus::wrong || status == CandidateStatus::out_of_bounds ||
         status == CandidateStatus::broke_rule;
}

std::string to_json(const TuningReport& report) {
  nlohmann::ordered_json json{{"device", report.device}, {"problem", report.problem}};
  json["winner"] = report.winner ? nlohmann::ordered_json(report.candidates[*report.winner].kernel) : nullptr;
  json["candidates"] = nlohmann::ordered_json::array();
  for (const CandidateReport& candidate : report.candidates) {
    nlohmann::ordered_json entry{{"kernel", candidate.kernel},
                                 {"estimate_us", candidate.estimate_us},
                                 {"status", name(candidate.status)},
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
