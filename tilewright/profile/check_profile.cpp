#include "tilewright/profile/check_profile.hpp"

#include <nlohmann/json.hpp>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::profile {

using Json = nlohmann::ordered_json;

void check_profile(std::string_view text) {
  const auto fail = [](const std::string& why) { throw InvalidArgument("this is no profile: " + why); };
  constexpr int kDeepest = 16;
  const auto is_kept = [](int depth, Json::parse_event_t, const Json&) { return depth <= kDeepest; };
  const Json profile = Json::parse(text, is_kept, false);
  if (profile.is_discarded() || !profile.is_object()) fail("it is not a JSON object");
  if (profile.value("schema", Json()) != 1)
    fail(fmt::format("its schema is {}, must be 1", printable(profile.value("schema", Json()).dump(), 40)));
  if (!profile.contains("problems") || !profile["problems"].is_array()) fail("it has no list of problems");
  for (const char* const field : {"device", "target"}) {
    if (!profile.contains(field) || !profile[field].is_string()) fail(fmt::format("it has no {}", field));
  }
  for (const Json& problem : profile["problems"]) {
    if (!problem.is_object() || !problem.contains("kernels") || !problem["kernels"].is_array() ||
        !problem.contains("problem") || !problem["problem"].is_string())
      fail("one of its problems has no description or no kernels");
    for (const Json& kernel : problem["kernels"]) {
      if (!kernel.is_object() || !kernel.contains("kernel") || !kernel["kernel"].is_string())
        fail("one of its kernels has no name");
    }
  }
}

}  // namespace tilewright::profile
