#include "tilewright/plan/sm90/folded.hpp"

#include <algorithm>

#include "tilewright/plan/sm90/operand.hpp"

namespace tilewright::plan {
namespace {

constexpr int kModes = 5;  // of a tensor map

const op::Mode& along_of(const op::OperandView& operand, bool by_rows) {
  return by_rows ? operand.columns : operand.rows;
}
const op::Mode& lines_of(const op::OperandView& operand, bool by_rows) {
  return by_rows ? operand.rows : operand.columns;
}

/// A stride that is never used must still be a value that tensor maps allow.
std::uint64_t stride_bytes(std::int64_t extent, std::int64_t stride, int element_bytes) {
  return static_cast<std::uint64_t>(extent > 1 ? stride * element_bytes : kTmaBytes);
}

}  // namespace

TmaFoldedModes tma_folded_modes(const op::OperandView& operand, bool by_rows) {
  TmaFoldedModes modes;
  const auto append = [&](TmaFoldedSource source, const op::Mode& mode, int first) {
    for (int i = first; i < mode.shape.rank(); ++i, ++modes.count) {
      if (modes.count >= static_cast<int>(modes.more.size())) continue;
      const bool is_last = i + 1 == mode.shape.rank();
      modes.more[static_cast<std::size_t>(modes.count)] = {source, is_last ? TmaFoldedModes::kNoEnd : mode.shape[i],
                                                           mode.shape[i], mode.stride[i]};
    }
  };
  const op::Mode &along = along_of(operand, by_rows), &lines = lines_of(operand, by_rows);
  if (along.shape.rank() > 0) modes.extent_along = along.shape[0];
  if (along.shape.rank() > 1) modes.along_line = along.shape[0];
  if (lines.shape.rank() > 0) {
    modes.extent_lines = lines.shape[0];
    modes.stride_lines = lines.stride[0];
  }
  if (lines.shape.rank() > 1) modes.lines = lines.shape[0];
  append(TmaFoldedSource::along_line, along, 1);
  append(TmaFoldedSource::lines, lines, 1);
  append(TmaFoldedSource::batch, operand.batch, 0);
  return modes;
}

TensorMap folded_map(const TensorMap& map, const op::OperandView& operand, bool by_rows) {
  const TmaFoldedModes modes = tma_folded_modes(operand, by_rows);
  const int element_bytes = bytes(operand.tensor.dtype);
  TensorMap result = map;
  result.rank = kModes;
  result.address = operand.tensor.address;
  result.box = {map.box[0], map.box[1], 1, 1, 1};
  result.element_strides = {1, 1, 1, 1, 1};
  result.extents = {static_cast<std::uint64_t>(modes.extent_along), static_cast<std::uint64_t>(modes.extent_lines)};
  result.strides = {0, stride_bytes(modes.extent_lines, modes.stride_lines, element_bytes)};
  for (std::size_t i = 0; i < modes.more.size(); ++i) {
    result.extents[2 + i] = static_cast<std::uint64_t>(modes.more[i].extent);
    result.strides[2 + i] = stride_bytes(modes.more[i].extent, modes.more[i].stride, element_bytes);
  }
  return result;
}

Support check_folded(char role, const op::OperandView& operand, bool by_rows, int row_elements, int lines) {
  const TmaFoldedModes modes = tma_folded_modes(operand, by_rows);
  if (modes.count + 2 > kModes) {
    return refuse("{} has {} coordinates, more than the {} modes of a tensor map", role, modes.count + 2, kModes)
        .as(RefusalCode::shape)
        .of(role);
  }
  if (modes.along_line != TmaFoldedModes::kNoEnd && modes.along_line % row_elements != 0) {
    return refuse("TMA loads boxes of {} adjacent elements of {}, which must divide the {} of the first mode",
                  row_elements, role, modes.along_line)
        .as(RefusalCode::shape)
        .of(role);
  }
  if (modes.lines != TmaFoldedModes::kNoEnd && modes.lines % lines != 0) {
    return refuse("TMA loads {} lines of {} together, which must divide the {} of the first mode", lines, role,
                  modes.lines)
        .as(RefusalCode::shape)
        .of(role);
  }
  constexpr std::uint32_t kAnyLines = 8;
  TensorMap map;
  map.type = tensor_map_type(operand.tensor.dtype).value_or_throw();
  map.box = {static_cast<std::uint32_t>(row_elements), kAnyLines};
  map.swizzle = swizzle_of_width(row_elements * bytes(operand.tensor.dtype));
  const Support encodes = check(folded_map(map, operand, by_rows));
  return encodes ? encodes : refuse("TMA cannot load {}: {}", role, encodes.reason()).as(RefusalCode::shape).of(role);
}

}  // namespace tilewright::plan
