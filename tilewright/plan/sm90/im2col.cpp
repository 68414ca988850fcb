#include "tilewright/plan/sm90/im2col.hpp"

#include <cstdlib>
#include <numeric>

#include "tilewright/base/rounding.hpp"
#include "tilewright/op/padded_taps.hpp"
#include "tilewright/op/shared_pixels.hpp"
#include "tilewright/op/tap_columns.hpp"

namespace tilewright::plan {
namespace {

/// A stride that is never used must still be a value that tensor maps allow.
std::uint64_t stride_bytes(std::int64_t extent, std::int64_t stride, int element_bytes) {
  const std::int64_t bytes = extent > 1 ? stride * element_bytes : kTmaBytes;
  return static_cast<std::uint64_t>(round_up(bytes, kTmaBytes));
}

}  // namespace

TensorMap im2col_map(const TensorMap& map, const op::OperandView& operand, bool walks_taps) {
  const op::Im2col& im2col = operand.im2col;
  const int element_bytes = bytes(operand.tensor.dtype);
  TensorMap result = map;
  result.rank = 4;
  result.address = operand.tensor.address;
  // Where stages walk along the taps, the other channels of a pixel are read when they have left L2. To fetch them
  // ahead made layers up to 1.4 times as slow (H100, 2026-11-26).
  const bool has_channels_beside = im2col.channels > map.box[0];
  result.promotion = has_channels_beside && walks_taps ? TensorMapPromotion::bytes_128 : TensorMapPromotion::bytes_256;
  result.box = {};
  result.im2col = Im2colBox{.channels_per_pixel = map.box[0], .pixels_per_column = map.box[1]};
  const auto unsigned_of = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  result.extents = {unsigned_of(channels_of_all(operand)), unsigned_of(im2col.w.extent), unsigned_of(im2col.h.extent),
                    unsigned_of(im2col.images)};
  result.strides = {0, stride_bytes(im2col.w.extent, im2col.w.stride, element_bytes),
                    stride_bytes(im2col.h.extent, im2col.h.stride, element_bytes),
                    stride_bytes(im2col.images, im2col.image_stride, element_bytes)};
  for (std::size_t mode = 0; mode < 2; ++mode) {
    const op::Im2colAxis& axis = mode == 0 ? im2col.w : im2col.h;
    // The tight box is right for any number of positions, which need not follow from the extents.
    const std::int64_t lower = lower_corner(axis);
    result.im2col->lower_corner[mode] = static_cast<std::int32_t>(lower);
    result.im2col->upper_corner[mode] =
        static_cast<std::int32_t>(lower + (axis.positions - 1) * axis.step + 1 - axis.extent);
    result.element_strides[mode + 1] = static_cast<std::uint32_t>(axis.step);
  }
  return result;
}

bool walks_taps(const op::Im2col& im2col, int element_bytes, int tile_k, std::int64_t l2_bytes) {
  constexpr double kRowsInFlight = 132 * 192;  // those of a tile on each SM
  // Copies of a line in both halves of L2, and its replacement, leave a third: between a third and a half, the layers
  // in docs/decisions/conv2d.md do not tell.
  const double held = static_cast<double>(l2_bytes) / 3;
  constexpr std::int64_t kLine = 128, kSector = 32;
  const std::int64_t pitch = im2col.w.stride * element_bytes;
  // Bytes of the lines that DRAM is read for, if `channels` adjacent ones of a pixel are read at a time.
  const auto lines = [&](std::int64_t channels) {
    const std::int64_t run = channels * element_bytes;
    return static_cast<double>(run % kLine == 0 && pitch % kLine == 0 ? run : run + kLine - kSector);
  };
  // Share of the reads that L2 misses, if the taps of an axis follow each other `between` taps apart: a tap meets the
  // pixels of one that came `apart` taps of the axis before.
  const auto misses = [&](const op::Im2colAxis& axis, std::int64_t between, double bytes_of_tap) {
    const std::int64_t apart = axis.step / std::gcd(axis.step, axis.tap_step);
    const std::int64_t positions_apart = apart * std::abs(axis.tap_step) / axis.step;
    if (apart >= axis.taps || positions_apart >= axis.positions ||
        static_cast<double>(apart * between) * bytes_of_tap * kRowsInFlight > held)
      return 1.0;
    return static_cast<double>(apart) / static_cast<double>(axis.taps);
  };
  const auto bytes_of_pixel = [&](std::int64_t channels) {
    const double of_tap = lines(channels);
    return static_cast<double>(ceil_div(im2col.channels, channels)) * of_tap * misses(im2col.w, 1, of_tap) *
           misses(im2col.h, im2col.w.taps, of_tap);
  };
  return bytes_of_pixel(tile_k) <= bytes_of_pixel(im2col.channels);
}

Support check_im2col(const op::OperandView& operand, int row_elements) {
  constexpr std::int64_t kMaxOffset = 255;
  constexpr std::uint32_t kAnyPixels = 8;
  const op::Im2col& im2col = operand.im2col;
  if (operand.tensor.distinct_matrices() > 1 && operand.tensor.batch_stride() != im2col.channels) {
    return refuse(
               "TMA loads im2col matrices that follow each other along the {} channels of each, got {} matrices {} "
               "elements apart",
               im2col.channels, operand.tensor.batch(), operand.tensor.batch_stride())
        .as(RefusalCode::shape);
  }
  const bool has_others_beside = im2col.taps() > 1 || operand.tensor.distinct_matrices() > 1;
  if (has_others_beside && im2col.columns_of_tap() % row_elements != 0) {
    return refuse("TMA loads boxes of {} channels, which must divide the {} of a tap", row_elements,
                  im2col.columns_of_tap())
        .as(RefusalCode::shape);
  }
  for (const op::Im2colAxis& axis : {im2col.h, im2col.w}) {
    const std::int64_t offset = (axis.taps - 1) * std::abs(axis.tap_step);
    if (offset > kMaxOffset) {
      return refuse("the last tap is {} pixels from the first, TMA reaches {}", offset, kMaxOffset)
          .as(RefusalCode::shape);
    }
  }
  TensorMap map;
  map.type = tensor_map_type(operand.tensor.dtype).value_or_throw();
  map.box = {static_cast<std::uint32_t>(row_elements), kAnyPixels};
  map.swizzle = swizzle_of_width(row_elements * bytes(operand.tensor.dtype));
  const Support encodes = check(im2col_map(map, operand, true));
  return encodes ? encodes : refuse("TMA cannot load the im2col matrix: {}", encodes.reason()).as(RefusalCode::shape);
}

std::vector<std::int64_t> padded_tap_rows(const op::GemmView& view) {
  const bool are_columns = op::can_pad_columns(view);
  if (!are_columns && !op::can_pad_taps(view)) return {};
  constexpr std::int64_t kMostPadding = 2;
  const op::OperandView& pixels = are_columns ? view.b : view.a;
  const std::int64_t channels = pixels.im2col.channels, longest = op::kMaxTapRow / bytes(pixels.tensor.dtype);
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 2 * std::gcd(channels, longest); row <= longest; row *= 2) {
    const std::int64_t padded = round_up(channels, row);
    if (padded > kMostPadding * channels) break;
    if (padded % (2 * row) == 0 && row < longest) continue;  // twice the length needs no more zeros
    rows.push_back(row);
  }
  return rows;
}

bool shares_pixels(const op::GemmView& view) {
  const bool are_columns = op::can_share_columns(view);
  if (!are_columns && !op::can_share_pixels(view)) return false;
  constexpr std::int64_t kMostTaps = 7, kMostPixels = 32;
  constexpr std::int64_t kShortestRow = 32;  // bytes of the narrowest swizzle
  const op::OperandView& of = are_columns ? view.b : view.a;
  const op::Im2col& pixels = of.im2col;
  return pixels.columns_of_tap() * bytes(of.tensor.dtype) % (are_columns ? kShortestRow : kMaxRowBytes) == 0 &&
         pixels.w.taps <= kMostTaps && (pixels.w.taps - 1) * std::abs(pixels.w.tap_step) <= kMostPixels;
}

}  // namespace tilewright::plan
