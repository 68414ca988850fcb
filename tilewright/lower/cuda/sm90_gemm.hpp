// CUDA C++ of an sm90_gemm plan. No choices are made here.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/sm90/gemm.hpp"

namespace tilewright::lower::cuda {

/// The complete source of kernel `symbol`, an identifier.
std::string lower(const plan::Sm90GemmPlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
