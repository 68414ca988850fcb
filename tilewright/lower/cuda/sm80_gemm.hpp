// Writes an sm80_gemm plan as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/sm80_gemm.hpp"

namespace tilewright::lower::cuda {

/// The complete source of the kernel. `symbol` is its name, a C identifier.
std::string lower(const plan::Sm80GemmPlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
