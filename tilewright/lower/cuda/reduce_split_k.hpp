// Writes a reduce_split_k plan as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/reduce_split_k.hpp"

namespace tilewright::lower::cuda {

/// The complete source of the kernel. `symbol` is its name, a C identifier.
std::string lower(const plan::ReduceSplitKPlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
