#include "tilewright/plan/sm90/row_classes.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tilewright/base/rounding.hpp"

namespace tilewright::plan {
namespace {

/// Positions first, first + divisor, ... of an axis, and the taps that meet them at whole coordinates. `axis` counts
/// these positions and taps.
struct AxisClass {
  op::Im2colAxis axis;
  std::int64_t first = 0;
  TapSteps taps = {};
};

/// Position first + i * s and tap t meet at (first + i * s + t * tap_step + offset) / s, which is whole for all i or
/// for none. If tap t0 is the first, the others are s / gcd(tap_step, s) apart.
AxisClass class_of(const op::Im2colAxis& axis, std::int64_t first) {
  const std::int64_t s = axis.divisor;
  AxisClass result{.axis = axis, .first = first};
  result.axis.divisor = 1;
  result.axis.positions = std::max<std::int64_t>(ceil_div(axis.positions - first, s), 0);
  result.taps.stride = s / std::gcd(std::abs(axis.tap_step), s);
  const auto sum = [&](std::int64_t tap) { return first + tap * axis.tap_step + axis.offset; };
  while (result.taps.first < axis.taps && sum(result.taps.first) % s != 0) ++result.taps.first;
  result.axis.taps = ceil_div(axis.taps - result.taps.first, result.taps.stride);
  result.axis.offset = result.axis.taps == 0 ? 0 : sum(result.taps.first) / s;
  result.axis.tap_step = axis.tap_step * result.taps.stride / s;
  return result;
}

void move(op::OperandView& operand, std::int64_t elements) {
  operand.tensor.address += static_cast<std::uint64_t>(elements * bytes(operand.tensor.dtype));
}

/// B, whose rows are (r, s, channel), with the rows of the taps of the class.
op::OperandView b_of(const op::GemmView& view, const AxisClass& h, const AxisClass& w) {
  const op::Im2col& a = view.a.im2col;
  op::OperandView result = view.b;
  if (view.b.access != op::OperandAccess::im2col) {  // its rows are one stride apart
    const std::int64_t row = view.b.tensor.stride[view.b.tensor.shape.rank() - 2];
    result.access = op::OperandAccess::im2col;
    result.im2col = {.image_stride = row * a.channels * a.w.taps,
                     .h = {.stride = row * a.channels},
                     .w = {.positions = a.channels, .extent = a.channels, .stride = row},
                     .channels = view.n()};
  }
  op::Im2col& b = result.im2col;
  move(result, h.taps.first * b.image_stride + w.taps.first * b.h.stride);
  b.images = h.axis.taps;
  b.image_stride *= h.taps.stride;
  b.h.positions = b.h.extent = w.axis.taps;
  b.h.stride *= w.taps.stride;
  return result;
}

/// The rows of D of the class. Those of all classes are the pixels of A, one stride apart.
op::OperandView d_of(const op::GemmView& view, const AxisClass& h, const AxisClass& w) {
  const op::Im2col& a = view.a.im2col;
  const std::int64_t pixel = view.d.tensor.stride[view.d.tensor.shape.rank() - 2];
  const std::int64_t line = pixel * a.w.positions;
  op::OperandView result = view.d;
  result.access = op::OperandAccess::im2col;
  move(result, h.first * line + w.first * pixel);
  const auto axis = [](const AxisClass& of, std::int64_t divisor, std::int64_t stride) {
    return op::Im2colAxis{.positions = of.axis.positions, .extent = of.axis.positions, .stride = stride * divisor};
  };
  result.im2col = {.images = a.images,
                   .image_stride = line * a.h.positions,
                   .h = axis(h, a.h.divisor, line),
                   .w = axis(w, a.w.divisor, pixel),
                   .channels = view.d_columns()};
  return result;
}

}  // namespace

std::int64_t row_class_count(const op::OperandView& a) {
  return a.access == op::OperandAccess::im2col ? a.im2col.row_classes() : 1;
}

MeanExtents mean_extents(const op::GemmView& view) {
  const std::int64_t classes = row_class_count(view.a);
  if (classes == 1) return {view.mean_m(), view.mean_n(), view.mean_k(), view.working_batch()};
  const auto mean = [&](std::int64_t extent) { return ceil_div(extent, classes); };
  return {mean(view.m()), view.n(), mean(view.k()), classes};
}

std::vector<RowClass> row_classes(const op::GemmView& view) {
  const op::Im2col& im2col = view.a.im2col;
  std::vector<RowClass> classes;
  for (std::int64_t y = 0; y < im2col.h.divisor; ++y) {
    for (std::int64_t x = 0; x < im2col.w.divisor; ++x) {
      const AxisClass h = class_of(im2col.h, y), w = class_of(im2col.w, x);
      RowClass result{.a = view.a, .b = b_of(view, h, w), .d = d_of(view, h, w), .h = h.taps, .w = w.taps};
      result.a.im2col.h = h.axis;
      result.a.im2col.w = w.axis;
      if (result.m() > 0) classes.push_back(result);
    }
  }
  std::ranges::stable_sort(classes, std::ranges::greater{}, &RowClass::k);
  return classes;
}

op::OperandView class_of_copy(const RowClass& row_class, const op::GemmView& view, const RepackedCopy& copy,
                              std::int64_t offset) {
  const op::Im2col &whole = view.a.im2col, &own = row_class.a.im2col;
  const std::int64_t channels = whole.channels;
  const auto taps = [](std::int64_t count, std::int64_t stride) {
    return op::Im2colAxis{.taps = count, .extent = count, .stride = stride, .tap_step = 1};
  };
  op::OperandView result = view.b;
  result.access = op::OperandAccess::im2col;
  result.tensor.address = static_cast<std::uint64_t>(offset);
  move(result, (row_class.h.first * whole.w.taps + row_class.w.first) * channels);
  result.im2col = {.images = copy.lines,
                   .image_stride = copy.pitch / bytes(view.b.tensor.dtype),
                   .h = taps(own.h.taps, row_class.h.stride * whole.w.taps * channels),
                   .w = taps(own.w.taps, row_class.w.stride * channels),
                   .channels = channels};
  return result;
}

}  // namespace tilewright::plan
