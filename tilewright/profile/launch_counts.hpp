// This file turns the counts of a launch on the emulator into JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tilewright/emulator/profile.hpp"

namespace tilewright::profile {

/// {"total": counts, "instructions": [{"instruction": "ld.global", counts}], "lines": [{"file", "line", counts}]} with
/// the names of emulator::profile_fields(); counts that are 0 are left out.
nlohmann::ordered_json counts_json(const emulator::LaunchProfile& profile);

}  // namespace tilewright::profile
