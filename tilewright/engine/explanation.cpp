#include "tilewright/engine/explanation.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tilewright::engine {

std::string to_text(const Explanation& explanation, bool with_refusals) {
  std::string text = fmt::format("{} kernels, best first by predicted time{}\n", explanation.kernels.size(),
                                 explanation.tuned ? ", after the tuned choice" : "");
  for (std::size_t rank = 0; rank < explanation.kernels.size(); ++rank) {
    const auto& [kernel, estimate_us] = explanation.kernels[rank];
    const bool is_tuned = rank == 0 && explanation.tuned;
    const std::string estimate = std::isfinite(estimate_us) ? fmt::format("{:.1f}", estimate_us) : "?";
    text += fmt::format("{:>3} {:>10} us  {}{}\n", rank + 1, estimate, kernel->name(),
                        is_tuned ? fmt::format("  (tuned: {:.1f} us)", explanation.tuned->median_us) : "");
    text += fmt::format("                   {}\n", plan::to_string(kernel->metadata().design));
  }
  if (!with_refusals) return text;
  text += fmt::format("{} refused\n", explanation.refused.size());
  for (const registry::RefusedKernel& refused : explanation.refused)
    text += fmt::format("  {}: {}\n", refused.name, refused.reason());
  return text;
}

std::string to_json(const Explanation& explanation) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["target"] = explanation.target.name();
  if (explanation.tuned)
    json["tuned"] = {{"name", explanation.tuned->kernel}, {"median_us", explanation.tuned->median_us}};
  json["kernels"] = Json::array();
  json["refused"] = Json::array();
  for (const auto& [kernel, estimate_us] : explanation.kernels) {
    json["kernels"].push_back({{"name", kernel->name()},
                               {"estimate_us", std::isfinite(estimate_us) ? Json(estimate_us) : Json(nullptr)},
                               {"metadata", Json::parse(registry::to_json(kernel->metadata()))}});
  }
  for (const auto& [kernel, refusal] : explanation.refused) {
    json["refused"].push_back({{"name", kernel},
                               {"reason", refusal.reason},
                               {"code", name(refusal.code)},
                               {"operand", refusal.operand},
                               {"numbers", refusal.numbers}});
  }
  return json.dump(2);
}

}  // namespace tilewright::engine
