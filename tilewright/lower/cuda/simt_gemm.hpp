// Writes a simt_gemm plan as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/simt_gemm.hpp"

namespace tilewright::lower::cuda {

/// The complete source of the kernel. `symbol` is its name, a C identifier.
std::string lower(const plan::SimtGemmPlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
