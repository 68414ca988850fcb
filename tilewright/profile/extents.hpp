// Lists of extents as command lines spell them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/base/support.hpp"

namespace tilewright::profile {

/// The extents of "64", of a list "64,128,1000", of a range "128:4096" (doubled at each step) or "128:4096:128" (first,
/// last and step), or of a list of these, in the order of the text. The last value of a range is included if a step
/// reaches it. `name` is the option's name in the reason of a refusal: for other texts, extents below 1, and more than
/// 100000 extents.
Result<std::vector<std::int64_t>> parse_extents(std::string_view text, std::string_view name);

}  // namespace tilewright::profile
