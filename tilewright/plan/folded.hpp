// The launch arguments of a folded operand: FoldedMatrix of device/tilewright/operand/folded_matrix.cuh.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {

/// Describes a field of type MatrixParameters<FoldedMatrix<count>, ...>; see parameters.hpp. `operand` is a function
/// that returns an op::OperandView, whose lines are its rows if `by_rows`, else its columns.
template <class Sink, class Operand>
void describe_folded(Sink& sink, const char* name, int count, bool by_rows, const Operand& operand) {
  constexpr std::array<const char*, op::Dims::kMaxRank> kCoordinates{"coordinate[0]", "coordinate[1]", "coordinate[2]",
                                                                     "coordinate[3]", "coordinate[4]", "coordinate[5]",
                                                                     "coordinate[6]", "coordinate[7]"};
  const auto mode = [&](const char* field, const auto& get) {
    sink.begin(field);
    for (int i = 0; i < count; ++i) {
      const auto extent = [&get, i]() -> std::int64_t {
        const op::Mode& all = get();
        return i < all.shape.rank() ? std::max<std::int64_t>(all.shape[i], 1) : 1;  // a matrix may be empty
      };
      sink.begin(kCoordinates[static_cast<std::size_t>(i)]);
      sink.field("stride", [&get, i]() -> std::int64_t {
        const op::Mode& all = get();
        return i < all.stride.rank() ? all.stride[i] : 0;
      });
      sink.int32("extent", extent);
      describe_divisor_by(sink, "by_extent", extent);
      sink.end(sizeof(std::int64_t));
    }
    sink.end(sizeof(std::int64_t));
  };
  sink.begin(name);
  sink.begin("matrix");
  mode("lines", [&]() -> const op::Mode& { return by_rows ? operand().rows : operand().columns; });
  mode("along_line", [&]() -> const op::Mode& { return by_rows ? operand().columns : operand().rows; });
  mode("batch", [&]() -> const op::Mode& { return operand().batch; });
  sink.end(sizeof(std::int64_t));
  sink.end(sizeof(std::int64_t));
}

}  // namespace tilewright::plan
