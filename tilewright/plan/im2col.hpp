// The launch arguments of an im2col operand: Im2colMatrix of device/tilewright/operand/im2col_matrix.cuh.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {

/// A divisor for an extent that may be 0, of a matrix that then has no elements.
inline Divisor divisor_by(std::int64_t extent) { return Divisor(std::max<std::int64_t>(extent, 1)); }

/// Describes a field of type Im2colMatrix<...>; see parameters.hpp. `matrix` is a function that returns an op::Im2col.
template <class Sink, class Matrix>
void describe_im2col_matrix(Sink& sink, const char* name, const Matrix& matrix) {
  const auto number = [&](const char* of, const auto& get) {
    sink.field(of, [&] { return static_cast<std::int32_t>(get()); });
  };
  const auto divisor = [&](const char* of, const auto& get) {
    describe_divisor(sink, of, [&] { return divisor_by(get()); });
  };
  const auto axis = [&](const char* of, const auto& get) {
    sink.begin(of);
    sink.field("stride", [&] { return get().stride; });
    number("positions", [&] { return get().positions; });
    number("taps", [&] { return get().taps; });
    number("extent", [&] { return get().extent; });
    number("step", [&] { return get().step; });
    number("tap_step", [&] { return get().tap_step; });
    number("offset", [&] { return get().offset; });
    number("divisor", [&] { return get().divisor; });
    divisor("by_positions", [&] { return get().positions; });
    divisor("by_taps", [&] { return get().taps; });
    divisor("by_divisor", [&] { return get().divisor; });
    sink.end(sizeof(std::int64_t));
  };
  sink.begin(name);
  sink.field("image_stride", [&] { return matrix().image_stride; });
  sink.field("block_stride", [&] { return matrix().block_stride; });
  axis("h", [&]() -> const op::Im2colAxis& { return matrix().h; });
  axis("w", [&]() -> const op::Im2colAxis& { return matrix().w; });
  number("channels", [&] { return matrix().channels; });
  divisor("by_channels", [&] { return matrix().channels; });
  sink.end(sizeof(std::int64_t));
}

/// The same for a field of type MatrixParameters<Im2colMatrix<...>, ...>.
template <class Sink, class Matrix>
void describe_im2col(Sink& sink, const char* name, const Matrix& matrix) {
  sink.begin(name);
  describe_im2col_matrix(sink, "matrix", matrix);
  sink.end(sizeof(std::int64_t));
}

}  // namespace tilewright::plan
