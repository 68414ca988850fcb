// Packed tensors, whose elements follow each other in memory in the order of the modes.
#pragma once

#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// Whether the last mode is contiguous and the others leave no gaps. Strides of modes of extent 1 do not count, and
/// neither does that of the batch mode of a pointer array.
bool is_packed(const Tensor& tensor);

}  // namespace tilewright::op
