// What the emulated device writes into a tensor map, and how its instructions read it back.
#pragma once

#include <optional>

#include "tilewright/runtime/tensor_map.hpp"

namespace tilewright::emulator {

/// @pre check(description)
runtime::TensorMap write_tensor_map(const runtime::TensorMapDescription& description);

/// None when the bytes are no tensor map of this device, or a damaged one.
std::optional<runtime::TensorMapDescription> read_tensor_map(const std::byte* bytes);

}  // namespace tilewright::emulator
