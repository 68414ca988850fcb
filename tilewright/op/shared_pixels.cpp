#include "tilewright/op/shared_pixels.hpp"

#include <cstdlib>

#include "tilewright/op/padded_taps.hpp"

namespace tilewright::op {
bool can_share_pixels(const GemmView& view) {
  const Im2col& a = view.a.im2col;
  return (can_pad_taps(view) || a.zeros > 0) && !a.divides() && a.w.taps > 1 && a.w.step == 1 && a.w.tap_step != 0 &&
         !view.reads_source && view.d.access == OperandAccess::strided && view.d.tensor.column_stride() == 1;
}

std::int64_t stored_width(const Im2col& a) { return a.w.positions - (a.w.taps - 1) * std::abs(a.w.tap_step); }

GemmView with_shared_pixels(GemmView view) {
  TILEWRIGHT_CHECK(can_share_pixels(view), "the pixels of the problem cannot be shared");
  view = with_filter_as_im2col(std::move(view));
  Im2col& a = view.a.im2col;
  const std::int64_t width = a.w.positions;
  a.w.positions += (a.w.taps - 1) * std::abs(a.w.tap_step);
  a.shares_pixels = true;
  view.a.tensor.shape = {a.rows(), a.columns()};
  const std::int64_t pixel = view.d.tensor.row_stride();
  view.d.access = OperandAccess::folded;
  view.d.rows = {.shape = {a.w.positions, a.images * a.h.positions}, .stride = {pixel, pixel * width}};
  view.d.columns = {.shape = {view.d_columns()}, .stride = {1}};
  view.d.tensor.shape = {a.rows(), view.d_columns()};
  view.c = view.d;
  view.has_source = false;
  return view;
}

}  // namespace tilewright::op
