#include "tilewright/op/tap_columns.hpp"

#include <utility>

#include "tilewright/base/rounding.hpp"

namespace tilewright::op {
namespace {

/// Whether B is the im2col matrix of a filter gradient, without groups and blocks of channels, and C is not read.
bool is_filter_gradient(const GemmView& view) {
  const bool has_pixels = view.b.access == OperandAccess::im2col && view.b.tensor.column_stride() == 1 &&
                          view.b.im2col.taps() > 1 && view.b.im2col.blocks == 1;
  return has_pixels && view.a.access == OperandAccess::strided && view.a.tensor.row_stride() == 1 &&
         view.batch() == 1 && !view.reads_source;
}

/// D with the columns of `b`, folded by taps.
GemmView with_columns_of(GemmView view, const Im2col& b) {
  const std::int64_t row = view.d.tensor.row_stride();
  view.d.access = OperandAccess::folded;
  view.d.rows = {.shape = {view.m()}, .stride = {row}};
  view.d.columns = {.shape = {b.columns_of_tap(), b.taps()}, .stride = {1, b.channels}};
  view.d.tensor.shape = {view.m(), b.columns()};
  view.c = view.d;
  view.has_source = false;
  return view;
}

}  // namespace

bool can_pad_columns(const GemmView& view) {
  return is_filter_gradient(view) && view.d.access == OperandAccess::strided && view.d.tensor.column_stride() == 1;
}

GemmView with_padded_columns(GemmView view, std::int64_t tap_row) {
  TILEWRIGHT_CHECK(can_pad_columns(view), "the columns of the problem cannot be padded");
  Im2col& b = view.b.im2col;
  b.zeros = round_up(b.channels, tap_row) - b.channels;
  view.b.tensor.shape = {b.rows(), b.columns()};
  view.b.tensor.stride = {b.columns(), 1};
  return with_columns_of(std::move(view), view.b.im2col);
}

bool can_share_columns(const GemmView& view) {
  const Im2col& b = view.b.im2col;
  return (can_pad_columns(view) || (is_filter_gradient(view) && b.zeros > 0)) && b.can_share_pixels();
}

GemmView with_shared_columns(GemmView view) {
  TILEWRIGHT_CHECK(can_share_columns(view), "the taps of the problem cannot share pixels");
  Im2col& b = view.b.im2col;
  const std::int64_t pixel = view.a.tensor.column_stride(), line = pixel * b.w.positions;
  Im2colAxis height{.positions = b.h.positions, .extent = b.h.positions, .stride = line};
  Im2colAxis width{.positions = b.w.positions, .extent = b.w.positions, .stride = pixel};
  const std::int64_t image = line * b.h.positions;
  if (b.w.taps == 1) std::swap(height, width);
  b.share_pixels();
  view.b.tensor.shape = {b.rows(), b.columns()};
  width.positions = b.w.positions;
  view.a.access = OperandAccess::im2col;
  view.a.im2col = {.images = b.images, .image_stride = image, .h = height, .w = width, .channels = view.m()};
  view.a.tensor.shape = {view.m(), b.rows()};
  view.a.tensor.stride = {1, view.m()};
  return with_columns_of(std::move(view), view.b.im2col);
}

}  // namespace tilewright::op
