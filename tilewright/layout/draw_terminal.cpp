// Pictures as grids of characters.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "tilewright/layout/draw.hpp"

namespace tilewright::layout {
namespace {

std::string text_of(const Cell& cell) { return cell.second.empty() ? cell.first : cell.first + " " + cell.second; }

std::string on(const Colour& fill, const std::string& text) {
  return fmt::format("\x1b[38;2;0;0;0;48;2;{};{};{}m{}\x1b[0m", fill.red, fill.green, fill.blue, text);
}

std::string label(const Axis& axis, int cell) { return fmt::format("{}", cell * axis.step); }

class Grid {
 public:
  Grid(const Picture& picture, bool colour) : picture_(picture), colour_(colour) {
    width_ = label(picture.columns, picture.columns.cells - 1).size();
    for (const Cell& cell : picture.cells) width_ = std::max(width_, text_of(cell).size());
    margin_ = label(picture.rows, picture.rows.cells - 1).size() + 2;
  }

  std::string text() const {
    std::string text = picture_.title + '\n' + header();
    for (int row = 0; row < picture_.rows.cells; ++row) text += rule(picture_.rows, row) + cells(row);
    text += rule({}, 0);
    for (const Dimension& dimension : picture_.dimensions) text += measure(dimension);
    if (!picture_.legend.empty()) text += legend();
    for (const std::string& note : picture_.notes) text += note + '\n';
    return text;
  }

 private:
  std::string header() const {
    std::string text(margin_, ' ');
    for (int column = 0; column < picture_.columns.cells; ++column)
      text += fmt::format("  {:^{}}", label(picture_.columns, column), width_ + 1);
    return text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
  }

  // The line above a row: "=" where a group of rows begins, "#" at corners where a group of columns begins.
  std::string rule(const Axis& axis, int row) const {
    const bool heavy = axis.group > 0 && row > 0 && row % axis.group == 0;
    std::string text(margin_, ' ');
    for (int column = 0; column < picture_.columns.cells; ++column)
      text += (begins_group(column) ? '#' : '+') + std::string(width_ + 2, heavy ? '=' : '-');
    return text + "+\n";
  }

  std::string cells(int row) const {
    std::string text = fmt::format(" {:>{}} ", label(picture_.rows, row), margin_ - 2);
    for (int column = 0; column < picture_.columns.cells; ++column) {
      const Cell& cell =
          picture_.cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(picture_.columns.cells) +
                         static_cast<std::size_t>(column)];
      const std::string shown = fmt::format(" {:>{}} ", text_of(cell), width_);
      text += begins_group(column) ? '#' : '|';
      text += colour_ ? on(cell.fill, shown) : shown;
    }
    return text + "|\n";
  }

  bool begins_group(int column) const {
    return picture_.columns.group > 0 && column > 0 && column % picture_.columns.group == 0;
  }

  std::string measure(const Dimension& dimension) const {
    const Axis& axis = dimension.along_rows ? picture_.rows : picture_.columns;
    return fmt::format("{}: from {} {} to {}\n", dimension.label, dimension.along_rows ? "row" : "column",
                       label(axis, dimension.from), label(axis, dimension.to));
  }

  std::string legend() const {
    if (!colour_) return "";
    std::string text;
    for (const LegendEntry& entry : picture_.legend) text += on(entry.fill, " " + entry.meaning + " ");
    return text + '\n';
  }

  const Picture& picture_;
  bool colour_;
  std::size_t width_ = 0;
  std::size_t margin_ = 0;
};

}  // namespace

std::string to_terminal(const std::vector<Picture>& pictures, bool colour) {
  std::string text;
  for (const Picture& picture : pictures) {
    if (!text.empty()) text += '\n';
    text += Grid(picture, colour).text();
  }
  return text;
}

}  // namespace tilewright::layout
