// Writes the kernel that copies a tensor to another order of its modes as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/permute.hpp"

namespace tilewright::lower::cuda {

/// Its names are in a namespace of the symbol, so that the text may follow that of another kernel.
std::string lower(const plan::PermutePlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
