// Writes the counts of a launch on the emulator as tables and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/emulator/profile.hpp"

namespace tilewright::cli {

std::string profile_text(const emulator::LaunchProfile& profile);
nlohmann::ordered_json profile_json(const emulator::LaunchProfile& profile);

}  // namespace tilewright::cli
