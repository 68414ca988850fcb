// The attributes of the emulated GPU.
#pragma once

#include <cuda.h>

#include "tools/cuda_runtime/machine.hpp"

namespace tilewright::cuda_runtime {

/// The attributes of the driver and of the runtime have the same numbers. Those that the emulator has nothing for are
/// 0.
int device_attribute(const Machine& machine, int attribute);

inline constexpr std::size_t kTotalConstantBytes = 65536;

}  // namespace tilewright::cuda_runtime
