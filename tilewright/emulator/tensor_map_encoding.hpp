// The emulated device's own encoding of tensor maps; the encoding of real GPUs is not documented.
#pragma once

#include <optional>

#include "tilewright/runtime/tensor_map.hpp"

namespace tilewright::emulator {

/// @pre check(description)
runtime::TensorMap encode_tensor_map(const runtime::TensorMapDescription& description);

/// Nothing when the 128 bytes are not a valid tensor map of the emulated device.
std::optional<runtime::TensorMapDescription> decode_tensor_map(const std::byte* bytes);

}  // namespace tilewright::emulator
