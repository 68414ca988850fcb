#include "tilewright/op/shared_pixels.hpp"

#include <cstdlib>

#include "tilewright/op/padded_taps.hpp"

namespace tilewright::op {
namespace {

/// Makes the rows of a window of one column the taps of one row, in the filter of a gradient, whose images and lines
/// are the rows and columns of the window.
void exchange_axes_of_filter(Im2col& filter) {
  const std::int64_t rows = filter.images, stride = filter.image_stride;
  filter.h = {.positions = rows, .extent = rows, .stride = stride};
  filter.images = 1;
  filter.image_stride = rows * stride;
}

}  // namespace

bool can_share_pixels(const GemmView& view) {
  const Im2col& a = view.a.im2col;
  return (can_pad_taps(view) || a.zeros > 0) && a.can_share_pixels() && !view.reads_source &&
         view.d.access == OperandAccess::strided && view.d.tensor.column_stride() == 1;
}

std::int64_t stored_width(const Im2col& a) { return a.w.positions - (a.w.taps - 1) * std::abs(a.w.tap_step); }

GemmView with_shared_pixels(GemmView view) {
  TILEWRIGHT_CHECK(can_share_pixels(view), "the pixels of the problem cannot be shared");
  view = with_filter_as_im2col(std::move(view));
  Im2col& a = view.a.im2col;
  const std::int64_t pixel = view.d.tensor.row_stride(), line = pixel * a.w.positions;
  const bool exchanges_axes = a.w.taps == 1;
  a.share_pixels();
  view.a.tensor.shape = {a.rows(), a.columns()};
  view.d.access = OperandAccess::folded;
  if (exchanges_axes) {
    view.d.rows = {.shape = {a.w.positions, a.h.positions, a.images}, .stride = {line, pixel, line * stored_width(a)}};
    if (view.b.im2col.taps() == 1) exchange_axes_of_filter(view.b.im2col);
  } else {
    view.d.rows = {.shape = {a.w.positions, a.images * a.h.positions}, .stride = {pixel, line}};
  }
  view.d.columns = {.shape = {view.d_columns()}, .stride = {1}};
  view.d.tensor.shape = {a.rows(), view.d_columns()};
  view.c = view.d;
  view.has_source = false;
  return view;
}

}  // namespace tilewright::op
