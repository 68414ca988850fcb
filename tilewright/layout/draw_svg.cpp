// Pictures as SVG. All coordinates are integers, so that the output is the same on every machine.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "tilewright/layout/draw.hpp"

namespace tilewright::layout {
namespace {

constexpr int sheet_margin = 16;
constexpr int gap = 40;           // between panels
constexpr int widest_row = 1600;  // the width at which panels wrap to the next row
constexpr int title_height = 28;
constexpr int labels_height = 20;  // the labels of the columns
constexpr int note_height = 18;
constexpr int legend_height = 30;
constexpr int swatch = 14;
constexpr int dimension_height = 30;  // a dimension line above the columns
constexpr int dimension_tail = 22;    // a dimension line beside the rows, without its label
constexpr int character = 7;          // the width of a 12 px monospace character
constexpr int half_of_digits = 4;
constexpr int element = 6;  // the size of an element in a cell of several

constexpr std::string_view style =
    R"(text{font:12px "DejaVu Sans Mono",Menlo,Consolas,monospace;text-anchor:middle;fill:#1a1a1a})"
    R"(.s{font-size:10px}.l{fill:#6b7280;font-size:11px}.t{font-size:13px;font-weight:bold;text-anchor:start})"
    R"(.n{text-anchor:start;fill:#374151}.d{fill:#1d4ed8;font-weight:bold}.e{text-anchor:end})"
    R"(path{fill:none}.g{stroke:#4b5563}.h{stroke:#c4c9d2;stroke-width:.4}.b{stroke:#111827;stroke-width:2.4})"
    R"(.m{stroke:#1d4ed8;stroke-width:1.6})";

struct Point {
  int x = 0;
  int y = 0;
};

struct Extent {
  int width = 0;
  int height = 0;
};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

int width_of(std::string_view text) { return character * static_cast<int>(text.size()); }

std::string hex(const Colour& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

// Text centred vertically at at.y. Digits are 8 px tall; not every renderer supports central baselines.
std::string text_at(Point at, std::string_view classes, std::string_view text) {
  const std::string attribute = classes.empty() ? "" : fmt::format(" class=\"{}\"", classes);
  return fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", at.x, at.y + half_of_digits, attribute, escaped(text));
}

std::string rectangle(Point at, Extent extent, const Colour& fill) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", at.x, at.y, extent.width,
                     extent.height, hex(fill));
}

std::string path(std::string_view classes, const std::string& commands) {
  return commands.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", classes, commands);
}

// One picture with its title, labels, dimension lines, legend and notes.
class Panel {
 public:
  explicit Panel(const Picture& picture) : picture_(picture) {
    int widest = std::max(width_of(label(picture.columns, picture.columns.cells - 1)), 2 * character);
    bool two_lines = false;
    for (const Cell& cell : picture.cells) {
      widest = std::max({widest, width_of(cell.first), width_of(cell.second)});
      two_lines = two_lines || !cell.second.empty();
    }
    cell_ = {widest + 10, two_lines ? 34 : 24};
    if (picture.rows.step > 1 || picture.columns.step > 1) {
      cell_ = {std::max(cell_.width, element * picture.columns.step), std::max(24, element * picture.rows.step)};
    }
    left_ = width_of(label(picture.rows, picture.rows.cells - 1)) + 10;
    for (const Dimension& dimension : picture.dimensions) {
      if (dimension.along_rows) left_ += width_of(dimension.label) + dimension_tail;
    }
    top_ = title_height + labels_height + dimension_height * count_dimensions(false);
  }

  Extent extent() const {
    int width = left_ + grid().width;
    width = std::max({width, width_of(picture_.title) + character * 2, legend_width()});
    for (const std::string& note : picture_.notes) width = std::max(width, width_of(note));
    const int notes = note_height * static_cast<int>(picture_.notes.size());
    return {width, top_ + grid().height + (picture_.legend.empty() ? 6 : legend_height) + notes};
  }

  std::string svg(Point at) const {
    const Point origin{at.x + left_, at.y + top_};
    std::string text = text_at({at.x, at.y + title_height / 2 - 4}, "t", picture_.title);
    return text + fills(origin) + rulings(origin) + texts(origin) + labels(origin) + dimensions(origin) +
           below({at.x, origin.y + grid().height});
  }

 private:
  static std::string label(const Axis& axis, int cell) { return fmt::format("{}", cell * axis.step); }

  Extent grid() const { return {picture_.columns.cells * cell_.width, picture_.rows.cells * cell_.height}; }

  int count_dimensions(bool along_rows) const {
    return static_cast<int>(std::count_if(picture_.dimensions.begin(), picture_.dimensions.end(),
                                          [&](const Dimension& d) { return d.along_rows == along_rows; }));
  }

  int legend_width() const {
    int width = 0;
    for (const LegendEntry& entry : picture_.legend) width += swatch + width_of(entry.meaning) + 18;
    return width;
  }

  template <class Draw>
  std::string each_cell(Point origin, const Draw& draw) const {
    std::string text;
    for (std::size_t i = 0; i < picture_.cells.size(); ++i) {
      const int row = static_cast<int>(i) / picture_.columns.cells;
      const int column = static_cast<int>(i) % picture_.columns.cells;
      text += draw(picture_.cells[i], Point{origin.x + column * cell_.width, origin.y + row * cell_.height});
    }
    return text;
  }

  std::string fills(Point origin) const {
    return each_cell(origin, [&](const Cell& cell, Point at) { return rectangle(at, cell_, cell.fill); });
  }

  std::string texts(Point origin) const {
    return each_cell(origin, [&](const Cell& cell, Point at) -> std::string {
      const Point middle{at.x + cell_.width / 2, at.y + cell_.height / 2};
      if (cell.first.empty()) return "";
      if (cell.second.empty()) return text_at(middle, "", cell.first);
      return text_at({middle.x, middle.y - 6}, "", cell.first) + text_at({middle.x, middle.y + 7}, "s", cell.second);
    });
  }

  // Hairlines between elements, lines between cells, heavier lines around groups and the whole grid.
  std::string rulings(Point origin) const {
    const Extent all = grid();
    const auto down = [&](int x) { return fmt::format("M{} {}v{}", origin.x + x, origin.y, all.height); };
    const auto across = [&](int y) { return fmt::format("M{} {}h{}", origin.x, origin.y + y, all.width); };
    std::string hairlines;
    std::string lines;
    std::string heavy;
    for (int i = 0; i <= picture_.columns.cells * picture_.columns.step; ++i) {
      const int cell = i / picture_.columns.step;
      const bool inside = i % picture_.columns.step != 0;
      (inside                             ? hairlines
       : is_heavy(picture_.columns, cell) ? heavy
                                          : lines) += down(i * cell_.width / picture_.columns.step);
    }
    for (int i = 0; i <= picture_.rows.cells * picture_.rows.step; ++i) {
      const int cell = i / picture_.rows.step;
      const bool inside = i % picture_.rows.step != 0;
      (inside                          ? hairlines
       : is_heavy(picture_.rows, cell) ? heavy
                                       : lines) += across(i * cell_.height / picture_.rows.step);
    }
    return path("h", hairlines) + path("g", lines) + path("b", heavy);
  }

  static bool is_heavy(const Axis& axis, int cell) {
    return cell == 0 || cell == axis.cells || (axis.group > 0 && cell % axis.group == 0);
  }

  std::string labels(Point origin) const {
    std::string text;
    for (int row = 0; row < picture_.rows.cells; ++row)
      text +=
          text_at({origin.x - 7, origin.y + row * cell_.height + cell_.height / 2}, "l e", label(picture_.rows, row));
    for (int column = 0; column < picture_.columns.cells; ++column)
      text += text_at({origin.x + column * cell_.width + cell_.width / 2, origin.y - labels_height / 2}, "l",
                      label(picture_.columns, column));
    return text;
  }

  std::string dimensions(Point origin) const {
    std::string text;
    int above = origin.y - labels_height - 8;
    int beside = origin.x - width_of(label(picture_.rows, picture_.rows.cells - 1)) - 20;
    for (const Dimension& dimension : picture_.dimensions) {
      if (dimension.along_rows) {
        text += measure_down(dimension, {beside, origin.y});
        beside -= width_of(dimension.label) + dimension_tail;
      } else {
        text += measure_across(dimension, {origin.x, above});
        above -= dimension_height;
      }
    }
    return text;
  }

  std::string measure_across(const Dimension& dimension, Point at) const {
    const int from = at.x + dimension.from * cell_.width;
    const int to = at.x + dimension.to * cell_.width;
    const std::string line = fmt::format("M{0} {2}v10M{1} {2}v10M{0} {3}H{1}m-6 -4l6 4l-6 4", from, to, at.y - 5, at.y);
    const int half = width_of(dimension.label) / 2;
    return path("m", line) + text_at({std::max((from + to) / 2, from + half), at.y - 13}, "d", dimension.label);
  }

  std::string measure_down(const Dimension& dimension, Point at) const {
    const int from = at.y + dimension.from * cell_.height;
    const int to = at.y + dimension.to * cell_.height;
    const std::string line = fmt::format("M{2} {0}h10M{2} {1}h10M{3} {0}V{1}m-4 -6l4 6l4 -6", from, to, at.x - 5, at.x);
    return path("m", line) + text_at({at.x - 10, (from + to) / 2}, "d e", dimension.label);
  }

  std::string below(Point at) const {
    std::string text;
    int y = at.y + 6;
    if (!picture_.legend.empty()) {
      int x = at.x;
      for (const LegendEntry& entry : picture_.legend) {
        text += rectangle({x, y + 4}, {swatch, swatch}, entry.fill);
        text += text_at({x + swatch + 5, y + 4 + swatch / 2}, "n", entry.meaning);
        x += swatch + width_of(entry.meaning) + 18;
      }
      y += legend_height - 6;
    }
    for (const std::string& note : picture_.notes) {
      text += text_at({at.x, y + note_height / 2}, "n", note);
      y += note_height;
    }
    return text;
  }

  const Picture& picture_;
  Extent cell_;
  int left_ = 0;  // the distance of the grid from the left of the panel
  int top_ = 0;
};

}  // namespace

std::string to_svg(const std::vector<Picture>& pictures) {
  std::string body;
  Extent sheet;
  Point at{sheet_margin, sheet_margin};
  int row_height = 0;
  for (const Picture& picture : pictures) {
    const Panel panel(picture);
    const Extent extent = panel.extent();
    if (at.x > sheet_margin && at.x + extent.width > widest_row) {
      at = {sheet_margin, at.y + row_height + gap / 2};
      row_height = 0;
    }
    body += panel.svg(at);
    row_height = std::max(row_height, extent.height);
    sheet = {std::max(sheet.width, at.x + extent.width + sheet_margin), at.y + row_height + sheet_margin};
    at.x += extent.width + gap;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<title>{2}</title>\n<style>{3}</style>\n{4}{5}</svg>\n",
      sheet.width, sheet.height, escaped(pictures.front().title), style, rectangle({0, 0}, sheet, {}), body);
}

}  // namespace tilewright::layout
