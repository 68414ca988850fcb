// The epilogue subtiles of sm90_gemm. A subtile is the part of D that a consumer warpgroup stages in one shared-memory
// buffer between its accumulators and the TMA store.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tilewright/base/dtype.hpp"
#include "tilewright/layout/swizzle.hpp"
#include "tilewright/op/gemm.hpp"

namespace tilewright::plan {

/// Outputs other than D that TMA stores from the same buffers as D; see device/tilewright/epilogue/tma_output.cuh.
struct TmaOutputs {
  static constexpr int kMost = 2;
  int count = 0;
  std::array<int, kMost> numbers{};        // indices into Epilogue::outputs
  std::array<int, kMost> element_bytes{};  // size of an element of each output

  int bytes() const { return element_bytes[0] + element_bytes[1]; }
  bool operator==(const TmaOutputs&) const = default;
};
/// Selects the first outputs that have D's storage order and lines aligned to 16 bytes. The result is empty if D itself
/// is not stored by TMA, or if groups differ in m or n, whose ends TMA does not know. `operands` are those of the
/// problem as computed.
TmaOutputs tma_outputs(const op::GemmSignature& operands, int split_k);

/// Whether TMA stores D, or could load C: its lines begin and end at multiples of 16 bytes, as TMA requires, and it is
/// neither a pointer array nor folded.
bool stores_by_tma(const op::TensorSignature& d);

/// The tensors that share an epilogue buffer: D; C, which is loaded into the place of D before D is written; and other
/// outputs, which follow D. Each of them has a part of the buffer.
struct OutputElements {
  int c_bytes = 2, d_bytes = 2;
  bool d_is_row_major = true;
  TmaOutputs others = {};
  bool stores_by_tma = true;  // D

  int widest() const { return std::max({c_bytes, d_bytes, others.element_bytes[0], others.element_bytes[1]}); }
  int narrowest() const;
  /// Bytes of a buffer per element of D, without those that align its parts.
  int bytes_per_element() const { return std::max(c_bytes, d_bytes) + others.bytes(); }
  /// Bytes of a buffer for `elements` elements of D, and of the parts of the other outputs in it. If there are any,
  /// each part begins at a multiple of 1024 bytes, as panels with a swizzle of 128 bytes must: a part whose elements
  /// have one byte may have an odd multiple of 512.
  int buffer_bytes(int elements) const;
  int bytes_of_others(int elements) const;
  /// The widest rows of a subtile in D, as a multiple of the widest panel. Plain stores of rows that do not begin at
  /// multiples of 16 bytes should have as few ends as possible: two tiles or subtiles share the 32 bytes at an end. If
  /// C and D differ in size, a thread holds all its results of a subtile, so the subtile stays narrow.
  int widest_panels() const { return d_is_row_major && !stores_by_tma && c_bytes == d_bytes ? 4 : 1; }
};

/// Number of epilogue buffers per consumer warpgroup. Double buffering lets the warpgroup fill one while TMA stores the
/// other.
constexpr int kOutputBuffers = 2;

/// An epilogue subtile covers 64 rows of D and is divided into panels along its columns. A panel consists of whole TMA
/// boxes, and each buffer holds one subtile.
struct EpilogueSubtile {
  int panel_columns = 0;  // 0 if no width divides the tile's columns, or if D does not pass through shared memory
  int panels = 0;         // panels per subtile

  /// Elements of D in a subtile.
  int elements() const;
  /// Shared memory of all buffers of a warpgroup.
  int bytes(const OutputElements& tensors) const;
  /// Number of subtiles that cover 64 rows by `tile_columns` columns of D.
  int count(int tile_columns) const;
  bool operator==(const EpilogueSubtile&) const = default;
};

/// Chooses the panels of a tile. TMA stores 16 bytes of a row in about the time of 64, because L2 is written in sectors
/// of 32 bytes: 128 rows of 112 bytes took 3080 clocks in boxes of 16 bytes and 1142 in one box (H200, 2026-11-23).
/// - Row-major: the widest panel of 32, 64 or 128 bytes a row that divides the tile's columns, and as many panels per
///   subtile as fit in elements.widest_panels() times 8 KB of the widest element and in `most_bytes` of shared memory,
///   at least one. If the widest has 32 bytes, then panels of half the tile if their rows are an odd multiple of 16
///   bytes and fit in `most_bytes`. If none divides them, then one panel as wide as the tile or, for wider tiles,
///   panels of 16 bytes. Rows of an odd multiple of 16 bytes have no bank conflicts without a swizzle.
/// - Column-major: the widest panel of at most 8 KB that divides the tile's columns.
/// The columns of a panel are a multiple of 8. The result is empty if there is no such panel.
EpilogueSubtile epilogue_subtile(const OutputElements& elements, int tile_columns, int most_bytes);

/// Shared memory that a kernel's stages should leave for its epilogue buffers: that of the narrowest subtile, or of a
/// packed half of the tile. Tiles of 176 columns of 2 bytes were up to 40 % slower with panels of 32 bytes and one more
/// stage (6656x7856x352, H200, 2026-11-23). 0 if there is no subtile.
int wanted_output_bytes(const OutputElements& elements, int tile_columns);

/// Bytes of D that are adjacent in a subtile of a tile with `tile_columns` columns of D.
int line_bytes(const OutputElements& elements, const EpilogueSubtile& subtile, int tile_columns);

/// The TMA boxes that make up one panel. A line is contiguous in global memory: it is a row of the panel or, if the
/// matrix is column-major, up to 128 bytes of a column.
struct PanelBoxes {
  int line = 0;   // elements per line
  int lines = 0;  // lines per box
  int boxes = 1;  // boxes per panel, which follow each other in shared memory

  bool operator==(const PanelBoxes&) const = default;
};
PanelBoxes panel_boxes(int element_bytes, bool is_row_major, int panel_columns);

/// How TMA stores one tile of D.
struct TileStores {
  int boxes = 0;            // instructions that one warpgroup issues
  int partial_sectors = 0;  // sectors of L2 of which a box row covers only a part, for each row of the tile
  bool operator==(const TileStores&) const = default;
};
/// `atoms` is the number of times that a warpgroup stores 64 rows of the tile, which has `tile_columns` columns of D.
/// @pre subtile.panel_columns != 0
TileStores tile_stores(const EpilogueSubtile& subtile, const OutputElements& elements, int atoms, int tile_columns);

/// Maps (row, column) of a panel to the offset in bytes from the panel's beginning in shared memory. TMA expects each
/// element of its boxes there when the swizzle is as wide as a line, or when there is no swizzle and the lines are
/// packed.
layout::ComposedLayout panel_layout(int element_bytes, bool is_row_major, int panel_columns);

}  // namespace tilewright::plan
