// Pictures of layouts: tables of cells, for a terminal, as SVG and as LaTeX (TikZ).
//
// A picture is made from a layout (which number, which thread, which colour stands where) and then rendered; the
// renderers know nothing of layouts. Rows are mode 0, columns are mode 1; a layout of rank 1 is one row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::layout {

struct Colour {
  std::uint8_t red = 255;
  std::uint8_t green = 255;
  std::uint8_t blue = 255;
  bool operator==(const Colour&) const = default;
};

/// One or two short lines on a colour.
struct Cell {
  std::string first;
  std::string second;
  Colour fill;
};

/// How the rows, or the columns, of a picture are counted and ruled.
struct Axis {
  int cells = 1;  // at least 1
  int step = 1;   // elements in a cell: cell i is labelled i * step, and hairlines show the elements
  int group = 0;  // a heavier line after so many cells; 0 for none
  bool operator==(const Axis&) const = default;
};

/// A distance beside the picture, from the near edge of one cell to that of another: "LBO 8192 B".
struct Dimension {
  bool along_rows = false;  // down the left side, else along the top
  int from = 0;             // cells
  int to = 0;
  std::string label;
};

struct LegendEntry {
  Colour fill;
  std::string meaning;
};

struct Picture {
  std::string title;
  Axis rows;
  Axis columns;
  std::vector<Cell> cells;  // rows.cells * columns.cells, row by row
  std::vector<Dimension> dimensions;
  std::vector<LegendEntry> legend;
  std::vector<std::string> notes;  // lines below
};

// Offsets that do not fit in 63 bits throw InvalidArgument, as the layouts themselves do.

/// Most cells of all the pictures of a layout.
inline constexpr std::int64_t max_drawn_cells = 16384;

/// The offset in each cell, darker the further it is in memory; of a layout with basis strides, the coordinate. Inner
/// modes are ruled: ((2,2),8) has a heavier line after every second row. A layout of a higher rank is a picture for
/// each coordinate of the modes past the second. Refused: more than max_drawn_cells.
Result<std::vector<Picture>> offset_pictures(const ComposedLayout& layout, const std::string& title);

/// As offset_pictures, coloured by bank of shared memory: 32 of 4 bytes, one colour for each 16 bytes. Elements are of
/// `bits` bits. Refused: bits not in [1, 1024], negative offsets.
Result<std::vector<Picture>> bank_pictures(const ComposedLayout& layout, int bits, const std::string& title);

/// Which thread has which value: `layout` takes (thread, value) to the index, first mode fastest, in a tile of rows x
/// columns. Coloured by thread; a cell held by several shows the first and "+". Refused: a layout of another rank than
/// 2, an index outside the tile, more than max_drawn_cells cells or pairs.
Result<Picture> thread_value_picture(const Layout& layout, int rows, int columns, const std::string& title);

/// The offset in each cell, coloured by the tile of rows x columns that it is in. Refused: a layout of another rank
/// than 2, extents that the tile does not divide, more than max_drawn_cells.
Result<Picture> tiled_picture(const ComposedLayout& layout, int rows, int columns, const std::string& title);

/// What a picture of tiles shows of a layout of rank 2.
struct TileView {
  int rows = 1;  // extents of a tile: they divide those of the layout
  int columns = 1;
  int bits = 0;         // of an element: cells say bytes; 0: cells say elements
  int marked_rows = 0;  // a block from the origin, in elements, that is tinted: what one instruction reads
  int marked_columns = 0;
};
/// A cell for each tile, which says where its first element is. The first tile is highlighted. Refused as
/// tiled_picture.
Result<Picture> tile_picture(const ComposedLayout& layout, const TileView& view, const std::string& title);

/// A grid of characters, as CuTe's print_layout; with `colour`, on the cells' colours by ANSI escapes.
std::string to_terminal(const std::vector<Picture>& pictures, bool colour);
/// A self-contained SVG document. @pre not empty
std::string to_svg(const std::vector<Picture>& pictures);
/// A document of class standalone that needs TikZ only. @pre not empty
std::string to_latex(const std::vector<Picture>& pictures);

}  // namespace tilewright::layout
