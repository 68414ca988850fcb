// An im2col product whose stages share pixels: the taps of one row of the window read the same pixels from shared
// memory. Position i of a line of pixels meets tap t at pixel i + t * tap_step, so that the rows of A for one tap are
// those for the tap before, tap_step positions later. This holds at the ends of lines, too, if each line has as many
// more positions as the last tap lies behind the first. What is computed at these positions is not stored.
#pragma once

#include "tilewright/op/gemm_view.hpp"

namespace tilewright::op {

/// Whether the pixels of the view can be shared: A is the im2col matrix of an fprop with a stride of 1 along the width,
/// or of a dgrad with a stride of 1 along both axes, without groups and blocks of channels; its window has several taps
/// along the width, or several along the height and one along the width, where the axes exchange their roles; D is a
/// strided matrix, and C is not read.
bool can_share_pixels(const GemmView& view);

/// The view in which the lines of A and D have more positions, and the filter B is an im2col matrix. The rows of D are
/// folded: the first positions of a line are its pixels, and the further ones, which overlap the next line, must not be
/// stored. The lines of images are columns if the axes exchange their roles. The kernel needs no code that reads C.
/// @pre can_share_pixels(view)
GemmView with_shared_pixels(GemmView view);

/// The pixels of D in each line of positions of A. @pre a.shares_pixels
std::int64_t stored_width(const Im2col& a);

}  // namespace tilewright::op
