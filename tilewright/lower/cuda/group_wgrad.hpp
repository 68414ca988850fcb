// Writes a group_wgrad plan as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/group_wgrad.hpp"

namespace tilewright::lower::cuda {

/// The complete source of the kernel. `symbol` is its name, a C identifier.
std::string lower(const plan::GroupWgradPlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
