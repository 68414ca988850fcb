// Writes a plan of filter gradients in the depthwise_conv family as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/depthwise_wgrad.hpp"

namespace tilewright::lower::cuda {

/// The complete source of the kernel. `symbol` is its name, a C identifier.
std::string lower(const plan::DepthwiseWgradPlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
