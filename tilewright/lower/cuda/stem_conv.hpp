// Writes a stem_conv plan as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/stem_conv.hpp"

namespace tilewright::lower::cuda {

/// The complete source of the kernel. `symbol` is its name, a C identifier.
std::string lower(const plan::StemConvPlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
