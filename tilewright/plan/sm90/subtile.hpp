// The epilogue subtiles of sm90_gemm: what a consumer warpgroup puts in one buffer of shared memory on the way from its
// accumulators to D, and how it lies there.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tilewright/base/dtype.hpp"
#include "tilewright/layout/swizzle.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::plan {

/// Outputs beside D that are stored by TMA from the same buffers as D: device/tilewright/epilogue/tma_output.cuh.
struct TmaOutputs {
  static constexpr int kMost = 2;
  int count = 0;
  std::array<int, kMost> numbers{};        // among Epilogue::outputs
  std::array<int, kMost> element_bytes{};  // of each

  int bytes() const { return element_bytes[0] + element_bytes[1]; }
  bool operator==(const TmaOutputs&) const = default;
};
/// The first outputs that have D's order and lines of whole 16 bytes; none where D itself is not stored by TMA.
/// `operands` are those of the problem as computed.
TmaOutputs tma_outputs(const op::GemmSignature& operands, int split_k);

/// Whether D's lines begin and end at the 16 bytes that TMA asks for.
bool stores_by_tma(const op::TensorSignature& d);

/// The elements that share a buffer: D; C, which is loaded into D's place before; other outputs, behind D.
struct OutputElements {
  int c_bytes = 2, d_bytes = 2;
  bool d_is_row_major = true;
  TmaOutputs others = {};

  int widest() const { return std::max({c_bytes, d_bytes, others.element_bytes[0], others.element_bytes[1]}); }
  int narrowest() const;
  /// Bytes that a buffer needs for each element of D.
  int bytes_per_element() const { return std::max(c_bytes, d_bytes) + others.bytes(); }
};

/// Buffers of a consumer warpgroup, used in turn: one is filled while the other is stored.
constexpr int kOutputBuffers = 2;

/// 64 rows of D by some columns, cut into panels along the columns. A panel is whole boxes of TMA, and each buffer
/// holds one subtile.
struct EpilogueSubtile {
  int panel_columns = 0;  // 0 where no width divides the tile's columns, or D does not go through shared memory
  int panels = 0;         // of one subtile

  /// Shared memory of all buffers of a warpgroup, where an element of D needs `element_bytes`.
  int bytes(int element_bytes) const;
  /// Subtiles of 64 rows by `tile_columns` columns of D.
  int count(int tile_columns) const;
  bool operator==(const EpilogueSubtile&) const = default;
};

/// The widest panels that divide a tile's columns, and as many of them as 8 KB and `most_bytes` of shared memory hold;
/// at least one. A panel has whole groups of 8 columns, and its lines are the width of a swizzle, 16 bytes or more.
EpilogueSubtile epilogue_subtile(const OutputElements& elements, int tile_columns, int most_bytes);

/// The boxes of TMA that one panel is. A line is contiguous in global memory: a row of the panel or, of a column-major
/// matrix, up to 128 bytes of a column.
struct PanelBoxes {
  int line = 0;   // elements
  int lines = 0;  // of a box
  int boxes = 1;  // one after another in shared memory

  bool operator==(const PanelBoxes&) const = default;
};
PanelBoxes panel_boxes(int element_bytes, bool is_row_major, int panel_columns);

/// (row, column) of a panel -> offset in bytes from the panel's beginning in shared memory: where TMA, with a swizzle
/// as wide as a line, puts the elements of the boxes.
layout::ComposedLayout panel_layout(int element_bytes, bool is_row_major, int panel_columns);

}  // namespace tilewright::plan
