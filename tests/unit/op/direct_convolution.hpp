// Convolutions by seven loops over their definition, and random convolutions, to compare kernels and the view with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/op/conv2d.hpp"

namespace tilewright::op {

/// The sums of products of every element of the written tensor, as if it were packed: each product of a pixel of y, a
/// tap and a channel is added to the sum that it belongs to. Inputs are on the host.
std::vector<double> direct_sums(const Conv2d& conv);

/// Calls visit(index of the packed tensor, offset in elements) for each element.
template <class Visit>
void for_each_element(const Tensor& tensor, const Visit& visit) {
  std::size_t index = 0;
  for (std::int64_t i = 0; i < tensor.shape[0]; ++i) {
    for (std::int64_t j = 0; j < tensor.shape[1]; ++j) {
      for (std::int64_t k = 0; k < tensor.shape[2]; ++k) {
        for (std::int64_t l = 0; l < tensor.shape[3]; ++l)
          visit(index++, i * tensor.stride[0] + j * tensor.stride[1] + k * tensor.stride[2] + l * tensor.stride[3]);
      }
    }
  }
}

/// A small convolution of packed tensors without memory, in any pass and mode, with groups, strides and dilations
/// beyond the filter and the image, and P and Q that do not follow from the other extents. C equals the output.
Conv2d random_convolution(std::uint64_t seed, DType type);

/// "fprop x(2,5,5,8) w(16,3,3,8) y(2,5,5,16) padding 1,1 stride 1,1 dilation 1,1 groups 1 cross_correlation"
std::string to_string(const Conv2d& conv);

}  // namespace tilewright::op
