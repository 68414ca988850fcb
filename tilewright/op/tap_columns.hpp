// Filter gradients whose columns, the taps and their channels, are computed in another number or order than they are
// stored.
#pragma once

#include <cstdint>

#include "tilewright/op/gemm_view.hpp"

namespace tilewright::op {

/// Whether the view is a filter gradient whose columns may be padded, and whose pixels may be shared: B is an im2col
/// matrix without groups and blocks of channels, whose channels are the columns of D; D is a row-major matrix, and C is
/// not read.
bool can_pad_columns(const GemmView& view);

/// The view in which each tap has a multiple of `tap_row` columns. B is zero in those behind the channels. D is folded:
/// its columns are the channels of the taps, and further ones overlap the next tap, and must not be stored. The kernel
/// needs no code that reads C. @pre can_pad_columns(view)
GemmView with_padded_columns(GemmView view, std::int64_t tap_row);

/// Whether the taps of a row of the window can share pixels: see Im2col::can_share_pixels().
bool can_share_columns(const GemmView& view);

/// The view whose K has as many more positions at the end of each line as the row of the window reaches beyond its
/// first tap, so that the elements of B for tap t of position i are those for the first tap of position i + t *
/// tap_step, at the ends of lines, too. A is an im2col matrix, and zero at the further positions, where elements of B
/// may be any pixels: if one is an infinity or a NaN, so is the product. D is folded as in with_padded_columns().
/// @pre can_share_columns(view); its columns may be padded
GemmView with_shared_columns(GemmView view);

}  // namespace tilewright::op
