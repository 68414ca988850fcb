// The launch arguments of an im2col operand: Im2colMatrix of device/tilewright/operand/im2col_matrix.cuh.
#pragma once

#include <cstdint>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {

/// Describes a field of type Im2colMatrix<...>; see parameters.hpp. `matrix` is a function that returns an op::Im2col.
template <class Sink, class Matrix>
void describe_im2col_matrix(Sink& sink, const char* name, const Matrix& matrix) {
  const auto describe_axis = [&](const char* field, const auto& get) {
    sink.begin(field);
    sink.field("stride", [&] { return get().stride; });
    sink.int32("positions", [&] { return get().positions; });
    sink.int32("taps", [&] { return get().taps; });
    sink.int32("extent", [&] { return get().extent; });
    sink.int32("step", [&] { return get().step; });
    sink.int32("tap_step", [&] { return get().tap_step; });
    sink.int32("offset", [&] { return get().offset; });
    sink.int32("divisor", [&] { return get().divisor; });
    describe_divisor_by(sink, "by_positions", [&] { return get().positions; });
    describe_divisor_by(sink, "by_taps", [&] { return get().taps; });
    describe_divisor_by(sink, "by_divisor", [&] { return get().divisor; });
    sink.end(sizeof(std::int64_t));
  };
  sink.begin(name);
  sink.field("image_stride", [&] { return matrix().image_stride; });
  sink.field("block_stride", [&] { return matrix().block_stride; });
  describe_axis("h", [&]() -> const op::Im2colAxis& { return matrix().h; });
  describe_axis("w", [&]() -> const op::Im2colAxis& { return matrix().w; });
  sink.int32("channels", [&] { return matrix().channels; });
  describe_divisor_by(sink, "by_channels", [&] { return matrix().channels; });
  sink.end(sizeof(std::int64_t));
}

/// Describes a field of type MatrixParameters<Im2colMatrix<...>, ...>, which has the matrix as a field.
template <class Sink, class Matrix>
void describe_im2col(Sink& sink, const char* name, const Matrix& matrix) {
  sink.begin(name);
  describe_im2col_matrix(sink, "matrix", matrix);
  sink.end(sizeof(std::int64_t));
}

}  // namespace tilewright::plan
