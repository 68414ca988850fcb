// Writes a depthwise_conv plan as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/depthwise_conv.hpp"

namespace tilewright::lower::cuda {

/// The complete source of the kernel. `symbol` is its name, a C identifier.
std::string lower(const plan::DepthwiseConvPlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
