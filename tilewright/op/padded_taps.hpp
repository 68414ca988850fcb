// An im2col product whose taps are padded: zeros follow the channels of each tap along K, in both operands. TMA fills
// the end of a box with zeros where the channels of its map end, so that a kernel can load rows of 128 bytes of any
// number of channels without a copy.
#pragma once

#include "tilewright/op/gemm_view.hpp"

namespace tilewright::op {

/// Whether the taps of the view can be padded: A is the im2col matrix of a convolution or of a gradient of its images,
/// without groups and blocks of channels, and it has several taps.
bool can_pad_taps(const GemmView& view);

/// The view with its filter B as an im2col matrix that has the columns of A as its rows.
/// @pre can_pad_taps(view), or the taps are padded already
GemmView with_filter_as_im2col(GemmView view);

/// The view in which each tap has a multiple of `tap_row` columns of A and rows of B. B becomes an im2col matrix if it
/// is none yet: a filter's columns are those of A, so that it is one without positions. @pre can_pad_taps(view)
GemmView with_padded_taps(GemmView view, std::int64_t tap_row);

}  // namespace tilewright::op
