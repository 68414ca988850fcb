// The text and the colour of the cells of a picture.
#include "tilewright/layout/draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "tilewright/layout/composed_layout.hpp"

namespace tilewright::layout {
namespace {

constexpr Colour white{255, 255, 255};
constexpr Colour near_colour{247, 251, 255};  // the colour of the smallest offset
constexpr Colour far_colour{107, 174, 214};   // the colour of the largest
constexpr Colour first_tile_colour{255, 158, 176};
constexpr Colour marked_colour{255, 226, 231};

constexpr std::array<Colour, 8> hues{{{141, 170, 232},
                                      {150, 212, 150},
                                      {250, 224, 128},
                                      {240, 152, 142},
                                      {196, 162, 222},
                                      {130, 206, 206},
                                      {246, 188, 126},
                                      {206, 196, 178}}};

std::uint8_t mix(std::uint8_t a, std::uint8_t b, double part) {
  return static_cast<std::uint8_t>(std::lround(a + (b - a) * part));
}

Colour mix(const Colour& a, const Colour& b, double part) {
  return {mix(a.red, b.red, part), mix(a.green, b.green, part), mix(a.blue, b.blue, part)};
}

// 32 colours, one for each lane of a warp: eight hues in four tints.
Colour thread_colour(std::int64_t thread) {
  constexpr std::array<double, 4> tints{0.0, 0.3, 0.55, 0.75};
  return mix(hues[static_cast<std::size_t>(thread % 8)], white, tints[static_cast<std::size_t>(thread / 8 % 4)]);
}

constexpr std::int64_t bank_bytes = 4;
constexpr std::int64_t banks = 32;
constexpr std::int64_t banks_per_colour = banks / static_cast<std::int64_t>(hues.size());

// swizzle o offset o layout, with a layout of rank 2.
struct Table {
  std::string title;
  Swizzle swizzle;
  LayoutAndOffset part;

  /// The offset, or the coordinate if the layout has basis strides.
  IntTuple at(int row, int column) const {
    const IntTuple value = part.offset + coordinate(part.layout, {row, column});
    return value.is_integer() ? IntTuple(swizzle(value.value())) : value;
  }
};

// The extent of the first leaf of a mode, at which a heavier line is drawn; 0 if it is the whole mode.
int inner_extent(const IntTuple& shape) {
  if (shape.is_leaf() || shape.rank() == 0) return 0;
  const std::int64_t first = leaves(shape).front();
  return first > 1 && first < product(shape) ? static_cast<int>(first) : 0;
}

Axis axis_of(const IntTuple& shape) { return {static_cast<int>(product(shape)), 1, inner_extent(shape)}; }

Layout in_two_modes(const Layout& layout) {
  if (layout.rank() >= 2) return layout;
  return concatenate({Layout(), layout.rank() == 0 ? Layout() : layout.mode(0)});
}

// The modes past the second as one layout.
Layout outer_modes(const Layout& layout) {
  std::vector<Layout> modes;
  for (int i = 2; i < layout.rank(); ++i) modes.push_back(layout.mode(i));
  return modes.empty() ? Layout() : concatenate(modes);
}

// One table for each coordinate of the modes past the second.
std::vector<Table> tables_of(const ComposedLayout& whole, const std::string& title) {
  const Layout layout = in_two_modes(whole.layout);
  const Layout outer = outer_modes(layout);
  std::vector<Table> tables;
  for (std::int64_t i = 0; i < size(outer); ++i) {
    const std::string at = to_string(idx2crd(i, outer.shape()));
    tables.push_back({layout.rank() == 2 ? title : title + "  at (_,_," + at.substr(1),
                      whole.swizzle,
                      {take(layout, 0, 2), IntTuple(whole.offset) + coordinate(outer, i)}});
  }
  return tables;
}

Support can_draw(std::int64_t cells) {
  if (cells > max_drawn_cells)
    return refuse("a drawing has at most {} cells, got {}: draw its tiles, or a slice", max_drawn_cells, cells);
  return {};
}

struct Range {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
};

template <class CellOf>
Picture picture_of(const Table& table, const CellOf& cell_of) {
  Picture picture;
  picture.title = table.title;
  picture.rows = axis_of(table.part.layout.shape()[0]);
  picture.columns = axis_of(table.part.layout.shape()[1]);
  for (int row = 0; row < picture.rows.cells; ++row) {
    for (int column = 0; column < picture.columns.cells; ++column)
      picture.cells.push_back(cell_of(table.at(row, column)));
  }
  return picture;
}

Range offsets_of(const std::vector<Table>& tables) {
  Range range;
  for (const Table& table : tables) {
    (void)picture_of(table, [&](const IntTuple& offset) {
      range = {std::min(range.least, offset.value()), std::max(range.most, offset.value())};
      return Cell();
    });
  }
  return range;
}

std::vector<Picture> coordinate_pictures(const std::vector<Table>& tables) {
  std::vector<Picture> pictures;
  for (const Table& table : tables) {
    pictures.push_back(picture_of(table, [](const IntTuple& t) { return Cell{to_string(t), "", near_colour}; }));
  }
  return pictures;
}

std::vector<LegendEntry> bank_legend() {
  std::vector<LegendEntry> legend;
  for (std::int64_t first = 0; first < banks; first += banks_per_colour) {
    legend.push_back({hues[static_cast<std::size_t>(first / banks_per_colour)],
                      fmt::format("{}-{}", first, first + banks_per_colour - 1)});
  }
  return legend;
}

Cell bank_cell(std::int64_t offset, int bits) {
  const std::int64_t bank = offset * bits / 8 / bank_bytes % banks;
  return {fmt::format("{}", offset), fmt::format("b{}", bank), hues[static_cast<std::size_t>(bank / banks_per_colour)]};
}

Support tiles_divide(const Layout& layout, const TileView& view) {
  if (layout.rank() != 2) return refuse("tiles are drawn of a layout of rank 2, got {}", to_string(layout));
  const std::int64_t rows = product(layout.shape()[0]);
  const std::int64_t columns = product(layout.shape()[1]);
  if (view.rows < 1 || view.columns < 1 || rows % view.rows != 0 || columns % view.columns != 0)
    return refuse("tiles of {}x{} do not divide {}x{}", view.rows, view.columns, rows, columns);
  if (view.bits < 0 || view.bits > 1024) return refuse("an element has 1 to 1024 bits, got {}", view.bits);
  return can_draw(rows / view.rows * (columns / view.columns));
}

std::string location(std::int64_t offset, int bits) {
  if (bits == 0) return fmt::format("{}", offset);
  const std::int64_t bit = checked_product(offset, bits);
  return bit % 8 == 0 ? fmt::format("{}", bit / 8) : fmt::format("{}b", bit);
}

}  // namespace

Result<std::vector<Picture>> offset_pictures(const ComposedLayout& layout, const std::string& title) {
  if (const Support drawn = can_draw(size(layout)); !drawn) return Refusal{drawn.reason()};
  const std::vector<Table> tables = tables_of(layout, title);
  if (has_basis(layout.layout.stride())) return coordinate_pictures(tables);
  const Range range = offsets_of(tables);
  const double span = std::max(1.0, static_cast<double>(range.most) - static_cast<double>(range.least));
  std::vector<Picture> pictures;
  for (const Table& table : tables) {
    pictures.push_back(picture_of(table, [&](const IntTuple& offset) {
      const double part = (static_cast<double>(offset.value()) - static_cast<double>(range.least)) / span;
      return Cell{to_string(offset), "", mix(near_colour, far_colour, part)};
    }));
  }
  return pictures;
}

Result<std::vector<Picture>> bank_pictures(const ComposedLayout& layout, int bits, const std::string& title) {
  if (bits < 1 || bits > 1024) return refuse("an element has 1 to 1024 bits, got {}", bits);
  if (const Support drawn = can_draw(size(layout)); !drawn) return Refusal{drawn.reason()};
  if (has_basis(layout.layout.stride())) return refuse("coordinates have no banks: {}", to_string(layout.layout));
  const std::vector<Table> tables = tables_of(layout, title);
  const Range range = offsets_of(tables);
  if (range.least < 0) return refuse("shared memory has no negative offsets, got {}", range.least);
  if (range.most > std::numeric_limits<std::int64_t>::max() / bits)
    return refuse("shared memory has no offset {}", range.most);
  std::vector<Picture> pictures;
  for (const Table& table : tables) {
    pictures.push_back(picture_of(table, [&](const IntTuple& offset) { return bank_cell(offset.value(), bits); }));
    pictures.back().legend = bank_legend();
    pictures.back().notes.push_back(fmt::format("offset and bank of each {}-bit element", bits));
  }
  return pictures;
}

Result<Picture> thread_value_picture(const Layout& layout, int rows, int columns, const std::string& title) {
  if (layout.rank() != 2) return refuse("a thread-value layout has rank 2, got {}", to_string(layout));
  if (rows < 1 || columns < 1) return refuse("a tile has positive extents, got {}x{}", rows, columns);
  const std::int64_t cells = std::int64_t{rows} * columns;
  if (const Support drawn = can_draw(std::max(cells, size(layout))); !drawn) return Refusal{drawn.reason()};

  Picture picture{title, {rows}, {columns}, std::vector<Cell>(static_cast<std::size_t>(cells)), {}, {}, {}};
  const std::int64_t threads = product(layout.shape()[0]);
  const std::int64_t values = product(layout.shape()[1]);
  for (std::int64_t thread = 0; thread < threads; ++thread) {
    for (std::int64_t value = 0; value < values; ++value) {
      const std::int64_t index = layout(thread, value);
      if (index < 0 || index >= cells)
        return refuse("thread {} value {} is at index {}, outside the tile of {}x{}", thread, value, index, rows,
                      columns);
      Cell& cell = picture.cells[static_cast<std::size_t>(index % rows * columns + index / rows)];
      if (cell.first.empty()) {
        cell = {fmt::format("T{}", thread), fmt::format("V{}", value), thread_colour(thread)};
      } else if (cell.first.back() != '+') {
        cell.first += '+';
      }
    }
  }
  return picture;
}

Result<Picture> tiled_picture(const ComposedLayout& layout, int rows, int columns, const std::string& title) {
  if (const Support divided = tiles_divide(layout.layout, {rows, columns}); !divided) return Refusal{divided.reason()};
  Result<std::vector<Picture>> pictures = offset_pictures(layout, title);
  if (!pictures) return pictures.refusal();
  Picture picture = pictures->front();
  picture.rows.group = rows;
  picture.columns.group = columns;
  for (std::size_t i = 0; i < picture.cells.size(); ++i) {
    const int tile_row = static_cast<int>(i) / picture.columns.cells / rows;
    const int tile_column = static_cast<int>(i) % picture.columns.cells / columns;
    picture.cells[i].fill = hues[static_cast<std::size_t>(tile_row + 3 * tile_column) % hues.size()];
  }
  return picture;
}

Result<Picture> tile_picture(const ComposedLayout& layout, const TileView& view, const std::string& title) {
  if (const Support divided = tiles_divide(layout.layout, view); !divided) return Refusal{divided.reason()};
  Picture picture;
  picture.title = title;
  picture.rows = {static_cast<int>(product(layout.layout.shape()[0]) / view.rows), view.rows};
  picture.columns = {static_cast<int>(product(layout.layout.shape()[1]) / view.columns), view.columns};
  for (int row = 0; row < picture.rows.cells; ++row) {
    for (int column = 0; column < picture.columns.cells; ++column) {
      const bool first = row == 0 && column == 0;
      const bool marked = row * view.rows < view.marked_rows && column * view.columns < view.marked_columns;
      picture.cells.push_back({location(layout(row * view.rows, column * view.columns), view.bits), "",
                               first ? first_tile_colour : (marked ? marked_colour : white)});
    }
  }
  return picture;
}

}  // namespace tilewright::layout
