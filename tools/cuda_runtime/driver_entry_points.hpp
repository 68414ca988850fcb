// The functions of the driver by name.
#pragma once

#include <string_view>

namespace tilewright::cuda_runtime {

/// The function that a program which was compiled for this version of CUDA (12080 is 12.8) calls by this name:
/// "cuMemAlloc" is cuMemAlloc_v2, and "cuCtxGetDevice" is cuCtxGetDevice_v2 from 13000 on. Null if there is none.
void* driver_entry_point(std::string_view name, int version);

}  // namespace tilewright::cuda_runtime
