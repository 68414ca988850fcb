// A profile that was read from JSON. Only .cpp files of this room include it.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "tilewright/base/error.hpp"

namespace tilewright::profile {

using Json = nlohmann::ordered_json;

/// @throws InvalidArgument, with what is missing, for a text that to_json() did not write
Json parse_profile(std::string_view text);

}  // namespace tilewright::profile
