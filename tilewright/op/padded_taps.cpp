#include "tilewright/op/padded_taps.hpp"

#include "tilewright/base/rounding.hpp"

namespace tilewright::op {
namespace {

/// Whether B is the filter of a convolution: column k of it has the taps and channels of A one after another.
bool is_filter(const OperandView& b) { return b.access == OperandAccess::strided && b.tensor.row_stride() == 1; }

/// Whether B is the filter of a gradient: its rows are (tap, channel of A).
bool is_filter_of_gradient(const GemmView& view) {
  return view.b.access == OperandAccess::im2col && view.b.im2col.taps() == 1 &&
         view.b.im2col.w.positions == view.a.im2col.channels;
}

/// The filter as an im2col matrix with the columns of A, of images of one line, one for each filter.
OperandView padded_filter(const OperandView& b, const Im2col& a) {
  OperandView result = b;
  result.access = OperandAccess::im2col;
  result.im2col = {.images = b.tensor.columns(),
                   .image_stride = b.tensor.column_stride(),
                   .h = {},
                   .w = {.taps = a.taps(), .extent = a.taps(), .stride = a.channels, .tap_step = 1},
                   .channels = a.channels,
                   .zeros = a.zeros};
  result.tensor.shape = {a.columns(), b.tensor.columns()};
  result.tensor.stride = {1, a.columns()};
  return result;
}

/// The filter of a gradient with rows of zeros behind those of each tap, which are positions outside its images.
OperandView padded_filter_of_gradient(const OperandView& b, const Im2col& a) {
  OperandView result = b;
  result.im2col.w.positions = a.columns_of_tap();
  result.tensor.shape = {result.im2col.rows(), b.tensor.columns()};
  return result;
}

}  // namespace

bool can_pad_taps(const GemmView& view) {
  const Im2col& a = view.a.im2col;
  if (view.a.access != OperandAccess::im2col || view.batch() != 1 || a.taps() == 1 || a.blocks != 1) return false;
  return is_filter(view.b) || is_filter_of_gradient(view);
}

GemmView with_padded_taps(GemmView view, std::int64_t tap_row) {
  TILEWRIGHT_CHECK(can_pad_taps(view), "the taps of the problem cannot be padded");
  Im2col& a = view.a.im2col;
  a.zeros = round_up(a.channels, tap_row) - a.channels;
  view.a.tensor.shape = {a.rows(), a.columns()};
  view.a.tensor.stride = {a.columns(), 1};
  return with_filter_as_im2col(std::move(view));
}

GemmView with_filter_as_im2col(GemmView view) {
  const Im2col& a = view.a.im2col;
  if (is_filter(view.b)) {
    view.b = padded_filter(view.b, a);
  } else if (is_filter_of_gradient(view)) {
    view.b = padded_filter_of_gradient(view.b, a);
  }
  return view;
}

}  // namespace tilewright::op
