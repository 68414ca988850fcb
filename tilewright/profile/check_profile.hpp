// Checks a text before it is read as the JSON of a profile.
#pragma once

#include <string_view>

namespace tilewright::profile {

/// @throws InvalidArgument, with what is missing, for a text that to_json() did not write
void check_profile(std::string_view text);

}  // namespace tilewright::profile
