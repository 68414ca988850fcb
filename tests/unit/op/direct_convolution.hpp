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

/// A small convolution of packed tensors without memory, in any pass and mode, with groups, strides and dilations
/// beyond the filter and the image, and P and Q that do not follow from the other extents. C equals the output.
Conv2d random_convolution(std::uint64_t seed, DType type);

/// The same with blocks of 32 channels, as in NC32HW32 and C32RSK32: fprop of s8. y and C may have no blocks.
Conv2d random_blocked_convolution(std::uint64_t seed, DType output);

/// "fprop x(2,5,5,8) w(16,3,3,8) y(2,5,5,16) padding 1,1 stride 1,1 dilation 1,1 groups 1 cross_correlation"
std::string to_string(const Conv2d& conv);

}  // namespace tilewright::op
