#include "tilewright/op/shared_pixels.hpp"

#include <cstdlib>

#include "tilewright/op/padded_taps.hpp"

namespace tilewright::op {
namespace {

/// The matrix as images of a.h.positions lines, each with `width` pixels and a.w.positions positions.
OperandView as_images(const OperandView& matrix, const Im2col& a, std::int64_t width) {
  OperandView result = matrix;
  const std::int64_t pixel = matrix.tensor.row_stride();
  const std::int64_t line = pixel * width;
  result.access = OperandAccess::im2col;
  result.im2col = {.images = a.images,
                   .image_stride = line * a.h.positions,
                   .h = {.positions = a.h.positions, .extent = a.h.positions, .stride = line},
                   .w = {.positions = a.w.positions, .extent = width, .stride = pixel},
                   .channels = matrix.tensor.columns()};
  result.tensor.shape = {a.rows(), matrix.tensor.columns()};
  return result;
}

}  // namespace

bool can_share_pixels(const GemmView& view) {
  const Im2col& a = view.a.im2col;
  return (can_pad_taps(view) || a.zeros > 0) && !a.divides() && a.w.taps > 1 && a.w.step == 1 && a.w.tap_step != 0 &&
         view.d.access == OperandAccess::strided && view.d.tensor.column_stride() == 1 &&
         (!view.reads_source || (view.c.access == OperandAccess::strided && view.c.tensor.column_stride() == 1));
}

GemmView with_shared_pixels(GemmView view) {
  TILEWRIGHT_CHECK(can_share_pixels(view), "the pixels of the problem cannot be shared");
  view = with_filter_as_im2col(std::move(view));
  Im2col& a = view.a.im2col;
  const std::int64_t width = a.w.positions;
  a.w.positions += (a.w.taps - 1) * std::abs(a.w.tap_step);
  a.shares_pixels = true;
  view.a.tensor.shape = {a.rows(), a.columns()};
  view.d = as_images(view.d, a, width);
  view.c = view.reads_source ? as_images(view.c, a, width) : view.d;
  return view;
}

}  // namespace tilewright::op
