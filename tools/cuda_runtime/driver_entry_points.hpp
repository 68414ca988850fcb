// The functions of the driver by name.
#pragma once

#include <string_view>

namespace tilewright::cuda_runtime {

/// The function that a program calls by this name: "cuMemAlloc" is cuMemAlloc_v2. Null if it is not emulated.
void* driver_entry_point(std::string_view name);

}  // namespace tilewright::cuda_runtime
