#include "tilewright/engine/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tilewright/registry/stated_design.hpp"

namespace tilewright::engine {

namespace {

/// "required deterministic, batch_invariant: 12.3 us, without 10.1 us; order of sums [...]"
std::string requirement_text(const Explanation& explanation) {
  const auto time = [](double us) { return std::isfinite(us) ? fmt::format("{:.1f} us", us) : "an unknown time"; };
  std::string text = fmt::format("required  {}", registry::to_string(explanation.required));
  double best = registry::kUnknownTime;
  for (const RankedKernel& ranked : explanation.kernels) best = std::min(best, ranked.estimate_us);
  if (explanation.unrestricted_us && !explanation.kernels.empty())
    text += fmt::format(": the best kernel takes {}, without the requirement {}", time(best),
                        time(*explanation.unrestricted_us));
  if (explanation.order) text += fmt::format("; order of sums: {}", plan::to_string(*explanation.order));
  return text + "\n";
}

}  // namespace

std::string to_text(const Explanation& explanation, bool with_refusals) {
  const std::optional<QuickStart>& quick_start = explanation.quick_start;
  const std::string_view first = explanation.tuned ? ", after the tuned choice"
                                 : quick_start     ? ", after the one that compiles quickly"
                                                   : "";
  const std::size_t count = explanation.kernels.size();
  std::string text =
      fmt::format("{} {}, best first by predicted time{}\n", count, count == 1 ? "kernel" : "kernels", first);
  if (explanation.required.any()) text = requirement_text(explanation) + text;
  for (std::size_t rank = 0; rank < explanation.kernels.size(); ++rank) {
    const auto& [kernel, estimate_us, remarks] = explanation.kernels[rank];
    std::string reason;  // to come first
    if (rank == 0 && explanation.tuned) reason = fmt::format("  (tuned: {:.1f} us)", explanation.tuned->median_us);
    if (rank == 0 && quick_start) reason = fmt::format("  (compiles in less time than {})", quick_start->instead_of);
    const std::string estimate = std::isfinite(estimate_us) ? fmt::format("{:.1f}", estimate_us) : "?";
    text += fmt::format("{:>3} {:>10} us  {}{}\n", rank + 1, estimate, kernel->name(), reason);
    if (const plan::Design* const design = registry::stated_design(kernel->metadata()))
      text += fmt::format("                   {}\n", plan::to_string(*design));
    for (const std::string& remark : remarks) text += fmt::format("                   {}\n", remark);
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
  if (explanation.quick_start) {
    json["quick_start"] = {{"name", explanation.quick_start->kernel},
                           {"instead_of", explanation.quick_start->instead_of}};
  }
  if (explanation.required.any()) {
    const std::optional<double>& unrestricted_us = explanation.unrestricted_us;
    json["required"] = {{"deterministic", explanation.required.deterministic},
                        {"batch_invariant", explanation.required.batch_invariant},
                        {"order", explanation.order ? Json(plan::to_string(*explanation.order)) : Json(nullptr)},
                        {"unrestricted_us",
                         unrestricted_us && std::isfinite(*unrestricted_us) ? Json(*unrestricted_us) : Json(nullptr)}};
  }
  json["kernels"] = Json::array();
  json["refused"] = Json::array();
  for (const auto& [kernel, estimate_us, remarks] : explanation.kernels) {
    json["kernels"].push_back({{"name", kernel->name()},
                               {"estimate_us", std::isfinite(estimate_us) ? Json(estimate_us) : Json(nullptr)},
                               {"metadata", Json::parse(registry::to_json(kernel->metadata()))}});
    if (!remarks.empty()) json["kernels"].back()["remarks"] = remarks;
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
