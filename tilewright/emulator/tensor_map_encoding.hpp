// The emulated device's own encoding of tensor maps; the encoding of real GPUs is not documented.
#pragma once

#include <optional>

#include "tilewright/base/tensor_map.hpp"

namespace tilewright::emulator {

/// @pre check(map)
EncodedTensorMap encode_tensor_map(const TensorMap& map);

/// The tensor map, with zeros for modes beyond its rank, or why the 128 bytes are not a valid tensor map of the
/// emulated device.
Result<TensorMap> decode_tensor_map(const std::byte* bytes);

/// A tensor map of which kernels replace one field after the other. It may be incomplete.
struct EditedTensorMap {
  TensorMap map;                  // fields of all kMaxTensorMapRank modes
  bool begun_with_zeros = false;  // else it is a copy of one that the device encoded
};

/// The 128 bytes must be zeros, a tensor map that the device encoded, or one that encode_edited() returned; nothing for
/// others. Zeros are a map of rank 1 whose other fields have the value 0, and whose extents are 1.
std::optional<EditedTensorMap> decode_edited(const std::byte* bytes);
EncodedTensorMap encode_edited(const EditedTensorMap& edited);

}  // namespace tilewright::emulator
