// The emulated device's own encoding of tensor maps; the encoding of real GPUs is not documented.
#pragma once

#include <optional>

#include "tilewright/base/tensor_map.hpp"

namespace tilewright::emulator {

/// @pre check(map)
EncodedTensorMap encode_tensor_map(const TensorMap& map);

/// The tensor map, with zeros for modes beyond its rank; nothing if the 128 bytes are not a valid tensor map of the
/// emulated device.
std::optional<TensorMap> decode_tensor_map(const std::byte* bytes);

}  // namespace tilewright::emulator
