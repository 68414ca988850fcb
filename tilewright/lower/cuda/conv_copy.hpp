// Writes the kernels that copy tensors of convolutions as CUDA C++.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/plan/conv_copy.hpp"

namespace tilewright::lower::cuda {

/// Its names are in a namespace of the symbol, so that the text may follow that of another kernel.
std::string lower(const plan::ConvCopyPlan& plan, std::string_view symbol);

}  // namespace tilewright::lower::cuda
