// Writes a skinny_gemm plan as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/skinny_gemm.hpp"

namespace tilewright::lower::cuda {

/// The complete source of the kernel. `symbol` is its name, a C identifier.
std::string lower(const plan::SkinnyGemmPlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
