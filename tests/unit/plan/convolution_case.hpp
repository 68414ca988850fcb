// The convolution that the tests of im2col operands plan.
#pragma once

#include <cstdint>

#include "tilewright/op/conv2d.hpp"

namespace tilewright::plan {

/// How far apart the tensors of a case lie in memory, in bytes.
inline constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// A 3x3 window of two images of 28x30 pixels, from 128 channels to 64.
inline op::Conv2d convolution(op::ConvPass pass) {
  return {.pass = pass,
          .x = op::packed_tensor(kApart, DType::f16, {2, 28, 30, 128}),
          .w = op::packed_tensor(2 * kApart, DType::f16, {64, 3, 3, 128}),
          .y = op::packed_tensor(3 * kApart, DType::f16, {2, 28, 30, 64}),
          .c = {},
          .padding = {1, 1}};
}

}  // namespace tilewright::plan
