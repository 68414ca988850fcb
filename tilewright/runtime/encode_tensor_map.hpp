// Encoding of tensor maps by the CUDA driver.
#pragma once

#include "tilewright/base/tensor_map.hpp"
#include "tilewright/runtime/driver.hpp"

namespace tilewright::runtime {

/// Encodes the tensor map. @throws DriverError if the driver refuses it, which check(map) predicts
EncodedTensorMap encode_tensor_map(Driver& driver, const TensorMap& map);

}  // namespace tilewright::runtime
