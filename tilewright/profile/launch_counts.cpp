#include "tilewright/profile/launch_counts.hpp"

#include <nlohmann/json.hpp>

namespace tilewright::profile {
namespace {

using Json = nlohmann::ordered_json;

void add_counts(Json& json, const emulator::ProfileCounts& counts) {
  for (const emulator::ProfileField& field : emulator::profile_fields()) {
    if (const std::uint64_t count = counts.*field.count; count != 0) json[field.name] = count;
  }
}

}  // namespace

nlohmann::ordered_json counts_json(const emulator::LaunchProfile& profile) {
  Json total = Json::object(), kinds = Json::array(), lines = Json::array();
  add_counts(total, profile.total);
  for (const emulator::ProfileRow& row : profile.kinds)
    add_counts(kinds.emplace_back(Json{{"instruction", row.name}}), row.counts);
  for (const emulator::ProfileRow& row : profile.lines)
    add_counts(lines.emplace_back(Json{{"file", row.name}, {"line", row.line}}), row.counts);
  return {{"total", total}, {"instructions", kinds}, {"lines", lines}};
}

}  // namespace tilewright::profile
