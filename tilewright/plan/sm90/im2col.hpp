// The tensor map of an im2col operand, and what the kernel needs to walk it: TmaIm2col of
// device/tilewright/operand/tma_im2col.cuh.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tilewright/base/tensor_map.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/im2col.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/sm90/operand.hpp"

namespace tilewright::plan {

/// Where the offsets of taps along an axis begin. They are unsigned, so that the bounding box begins at the pixel of
/// the tap with the least coordinate.
inline std::int64_t first_offset(const op::Im2colAxis& axis) {
  return axis.tap_step < 0 ? -(axis.taps - 1) * axis.tap_step : 0;
}
/// The lower corner of the bounding box along an axis.
inline std::int64_t lower_corner(const op::Im2colAxis& axis) { return axis.offset - first_offset(axis); }

/// The channels of all matrices of a batch whose matrices follow each other along the channels.
inline std::int64_t channels_of_all(const op::OperandView& operand) {
  return operand.im2col.channels * operand.tensor.distinct_matrices();
}

/// A channel behind all, at which a box may begin: TMA raises an illegal instruction if a box of an im2col map begins
/// at a channel that is not a multiple of 16 bytes (measured on an H200, 2026-11-26).
inline std::int64_t channel_behind_all(const op::OperandView& operand) {
  return round_up(channels_of_all(operand), std::int64_t{kTmaBytes} / bytes(operand.tensor.dtype));
}

/// The tensor map of the operand, with the type and swizzle of `map` and boxes of map.box[0] channels and map.box[1]
/// pixels. `walks_taps` says whether the other channels of a pixel are read much later.
TensorMap im2col_map(const TensorMap& map, const op::OperandView& operand, bool walks_taps);

/// Whether stages with `tile_k` channels of one tap are read from DRAM less often if those of all taps come before the
/// next channels than if all channels of a tap come before the next tap. Between two taps that meet a pixel, the CTAs
/// of a GPU read the pixels of other taps, which L2 holds up to a share of `l2_bytes`. Does not depend on the number of
/// images, so that the order of the sum of a row does not.
bool walks_taps(const op::Im2col& im2col, int element_bytes, int tile_k, std::int64_t l2_bytes);

/// Refuses what TMA cannot load: a batch whose matrices do not follow each other along the channels, boxes whose
/// columns cross the end of a tap, steps above 8, offsets above 255, and corners of the bounding box that do not fit.
/// A row of a box has `row_elements`.
Support check_im2col(const op::OperandView& operand, int row_elements);

/// The lengths in elements to whose multiples the taps of the view are worth padding: each makes the rows of TMA boxes
/// longer than a shorter length or no padding does, for at most as many zeros as channels.
std::vector<std::int64_t> padded_tap_rows(const op::GemmView& view);

/// Whether to offer kernels whose taps share pixels: a tap's channels fill rows of 128 bytes, or of 32 and more where
/// taps are columns, and the taps are so close that a stage has few more pixels than one tap needs.
bool shares_pixels(const op::GemmView& view);

/// Describes a field of type TmaIm2col. `view` is a function that returns an op::OperandView, `request` one that
/// returns the TensorMapRequest, `walks_taps` one that says whether stages walk along the taps.
template <class Sink, class View, class Request, class WalksTaps>
void describe_tma_im2col(Sink& sink, const char* name, const View& view, const Request& request,
                         const WalksTaps& walks_taps) {
  const auto number = [&](const char* of, const auto& get) {
    sink.field(of, [&] { return static_cast<std::int32_t>(get()); });
  };
  const auto divisor = [&](const char* of, const auto& get) {
    describe_divisor(sink, of, [&] { return divisor_by(get()); });
  };
  const auto axis = [&](const char* of, const auto& get) {
    sink.begin(of);
    number("positions", [&] { return get().positions; });
    number("taps", [&] { return get().taps; });
    number("lower", [&] { return lower_corner(get()); });
    number("step", [&] { return get().step; });
    number("first_offset", [&] { return first_offset(get()); });
    number("tap_step", [&] { return get().tap_step; });
    divisor("by_positions", [&] { return get().positions; });
    divisor("by_taps", [&] { return get().taps; });
    sink.end(sizeof(std::int32_t));
  };
  sink.begin(name);
  sink.field("map", request);
  axis("h", [&]() -> const op::Im2colAxis& { return view().im2col.h; });
  axis("w", [&]() -> const op::Im2colAxis& { return view().im2col.w; });
  number("columns_of_tap", [&] { return view().im2col.columns_of_tap(); });
  number("taps", [&] { return view().im2col.taps(); });
  number("walked_taps", [&] { return walks_taps() ? view().im2col.taps() : 1; });
  number("channel_behind_all", [&] { return channel_behind_all(view()); });
  divisor("by_columns_of_tap", [&] { return view().im2col.columns_of_tap(); });
  sink.end(kTensorMapAlignment);
}

}  // namespace tilewright::plan
