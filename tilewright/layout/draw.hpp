// Pictures of layouts: tables of cells, rendered for a terminal, as SVG and as LaTeX (TikZ).
//
// A Picture holds the text and the colour of each cell; renderers do not depend on layouts. Rows are mode 0, columns
// are mode 1. A layout of rank 1 is one row.
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

/// One or two short lines of text on a colour.
struct Cell {
  std::string first;
  std::string second;
  Colour fill;
};

/// The labels and lines of the rows, or of the columns, of a picture.
struct Axis {
  int cells = 1;  // at least 1
  int step = 1;   // elements per cell: cell i has the label i * step, and hairlines separate the elements
  int group = 0;  // cells between heavier lines; 0: no such lines
  bool operator==(const Axis&) const = default;
};

/// A dimension line beside the picture, from the first edge of cell `from` to that of cell `to`: "LBO 8192 B".
struct Dimension {
  bool along_rows = false;  // on the left side; else along the top
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

// Offsets that do not fit in 63 bits throw InvalidArgument, as evaluating the layout does.

/// The limit of cells, in all pictures of a layout together.
inline constexpr std::int64_t max_drawn_cells = 16384;

/// Each cell shows its offset, the larger the darker, or its coordinate if the layout has basis strides. Heavier lines
/// show inner modes: ((2,2),8) has one after every second row. A layout of rank 3 or more has one picture for each
/// coordinate of the modes past the second. Refused: more than max_drawn_cells.
Result<std::vector<Picture>> offset_pictures(const ComposedLayout& layout, const std::string& title);

/// offset_pictures coloured by shared-memory bank (32 banks of 4 bytes), one colour for each 16 bytes. Elements have
/// `bits` bits. Refused: bits not in [1, 1024], negative offsets.
Result<std::vector<Picture>> bank_pictures(const ComposedLayout& layout, int bits, const std::string& title);

/// A thread-value layout: `layout` maps (thread, value) to the column-major index in a tile of rows x columns. Each
/// cell shows thread and value and is coloured by thread; a cell of several threads shows the first and "+". Refused: a
/// rank other than 2, an index outside the tile, more than max_drawn_cells cells or pairs.
Result<Picture> thread_value_picture(const Layout& layout, int rows, int columns, const std::string& title);

/// Each cell shows its offset and is coloured by its tile of rows x columns. Refused: a rank other than 2, extents that
/// the tile does not divide, more than max_drawn_cells.
Result<Picture> tiled_picture(const ComposedLayout& layout, int rows, int columns, const std::string& title);

/// The parameters of tile_picture.
struct TileView {
  int rows = 1;  // extents of a tile; they must divide the extents of the layout
  int columns = 1;
  int bits = 0;         // bits of an element: cells show byte offsets; 0: cells show offsets in elements
  int marked_rows = 0;  // elements of a block at the origin that is tinted, such as the operand of one instruction
  int marked_columns = 0;
};
/// One cell for each tile, which shows the offset of its first element. The first tile is highlighted. Refused as
/// tiled_picture.
Result<Picture> tile_picture(const ComposedLayout& layout, const TileView& view, const std::string& title);

/// A grid of characters as CuTe's print_layout prints. With `colour`, ANSI escapes colour the cells.
std::string to_terminal(const std::vector<Picture>& pictures, bool colour);
/// A self-contained SVG document. @pre not empty
std::string to_svg(const std::vector<Picture>& pictures);
/// A LaTeX document of class standalone that needs TikZ only. @pre not empty
std::string to_latex(const std::vector<Picture>& pictures);

}  // namespace tilewright::layout
