#include "tilewright/op/packed.hpp"

namespace tilewright::op {

bool is_packed(const Tensor& tensor) {
  std::int64_t elements = 1;
  for (int mode = tensor.shape.rank() - 1; mode >= (tensor.is_pointer_array() ? 1 : 0); --mode) {
    if (tensor.shape[mode] != 1 && tensor.stride[mode] != elements) return false;
    elements *= tensor.shape[mode];
  }
  return true;
}

}  // namespace tilewright::op
