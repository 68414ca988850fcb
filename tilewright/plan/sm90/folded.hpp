// The tensor map of a folded operand, and what the kernel needs to find a box in it: TmaFolded of
// device/tilewright/operand/tma_folded.cuh.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "tilewright/base/tensor_map.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/plan/parameters.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {

/// The values of TmaFoldedSource.
enum class TmaFoldedSource : std::int32_t { along_line, lines, batch };

/// The coordinates of a folded operand as the modes of a tensor map. Of the first coordinates, `extent` is that at
/// which the next coordinate steps: the largest 32-bit integer if there is none.
struct TmaFoldedModes {
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int32_t>::max();
  struct More {
    TmaFoldedSource source = TmaFoldedSource::batch;
    std::int64_t end = 1;                 // as `extent` above
    std::int64_t extent = 1, stride = 0;  // of the tensor map; stride in elements
  };

  std::int64_t along_line = kNoEnd, lines = kNoEnd;
  std::int64_t extent_along = 1, extent_lines = 1, stride_lines = 0;  // of the tensor map
  std::array<More, 3> more{};
  int count = 0;  // of `more` that are used, or would be
};
/// `by_rows` says whether the lines are the operand's rows.
TmaFoldedModes tma_folded_modes(const op::OperandView& operand, bool by_rows);

/// The tensor map of the operand, with the type, swizzle and box of `map`.
TensorMap folded_map(const TensorMap& map, const op::OperandView& operand, bool by_rows);

/// Refuses operands with more coordinates than a tensor map has modes, boxes of `row_elements` and tiles of `lines`
/// that cross the end of a first coordinate, and strides that tensor maps do not allow.
Support check_folded(char role, const op::OperandView& operand, bool by_rows, int row_elements, int lines);

/// Describes a field of type TmaFolded. `modes` is a function that returns TmaFoldedModes, `request` one that returns
/// the TensorMapRequest.
template <class Sink, class Modes, class Request>
void describe_tma_folded(Sink& sink, const char* name, const Modes& modes, const Request& request) {
  const auto number = [&](const char* of, const auto& get) {
    sink.field(of, [&] { return static_cast<std::int32_t>(get()); });
  };
  const auto divisor = [&](const char* of, const auto& get) {
    describe_divisor(sink, of, [&] { return Divisor(get()); });
  };
  sink.begin(name);
  sink.field("map", request);
  number("along_line", [&] { return modes().along_line; });
  number("lines", [&] { return modes().lines; });
  divisor("by_along_line", [&] { return modes().along_line; });
  divisor("by_lines", [&] { return modes().lines; });
  constexpr std::array<const char*, 3> kMore{"more[0]", "more[1]", "more[2]"};
  for (std::size_t i = 0; i < kMore.size(); ++i) {
    sink.begin(kMore[i]);
    number("source", [&] { return modes().more[i].source; });
    number("extent", [&] { return modes().more[i].end; });
    divisor("by_extent", [&] { return modes().more[i].end; });
    sink.end(sizeof(std::int32_t));
  }
  sink.end(kTensorMapAlignment);
}

}  // namespace tilewright::plan
