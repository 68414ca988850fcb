// How many instructions of each kind the PTX of a kernel has.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::profile {

/// The kinds, in a fixed order, with the number of instructions in the text. An instruction in a loop is counted once:
/// these are not executed instructions. Kinds that do not occur are left out.
std::vector<std::pair<std::string, int>> count_instructions(std::string_view ptx);

}  // namespace tilewright::profile
