// Pictures as LaTeX (TikZ): a cell is one unit, rows go down.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "tilewright/layout/draw.hpp"

namespace tilewright::layout {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("_&%#${}").find(c) != std::string_view::npos) result += '\\';
    if (c == '<' || c == '>') {
      result += fmt::format("\\text{}{{}}", c == '<' ? "less" : "greater");
    } else {
      result += c;
    }
  }
  return result;
}

// Names for the colours of the pictures.
class Palette {
 public:
  explicit Palette(const std::vector<Picture>& pictures) {
    for (const Picture& picture : pictures) {
      for (const Cell& cell : picture.cells) add(cell.fill);
      for (const LegendEntry& entry : picture.legend) add(entry.fill);
    }
  }

  std::string name(const Colour& colour) const {
    return fmt::format("tw{}", std::find(colours_.begin(), colours_.end(), colour) - colours_.begin());
  }

  std::string definitions() const {
    std::string text;
    for (const Colour& colour : colours_)
      text +=
          fmt::format("\\definecolor{{{}}}{{RGB}}{{{},{},{}}}\n", name(colour), colour.red, colour.green, colour.blue);
    return text;
  }

 private:
  void add(const Colour& colour) {
    if (std::find(colours_.begin(), colours_.end(), colour) == colours_.end()) colours_.push_back(colour);
  }

  std::vector<Colour> colours_;
};

std::string label(const Axis& axis, int cell) { return fmt::format("{}", cell * axis.step); }

std::string fills(const Picture& picture, const Palette& palette) {
  const auto columns = static_cast<std::size_t>(picture.columns.cells);
  std::string text;
  for (std::size_t i = 0; i < picture.cells.size(); ++i)
    text += fmt::format("\\fill[{}] ({},{}) rectangle +(1,1);\n", palette.name(picture.cells[i].fill), i % columns,
                        i / columns);
  return text;
}

std::string texts(const Picture& picture) {
  const auto columns = static_cast<std::size_t>(picture.columns.cells);
  std::string text;
  for (std::size_t i = 0; i < picture.cells.size(); ++i) {
    const Cell& cell = picture.cells[i];
    const std::string shown =
        cell.second.empty() ? cell.first : fmt::format("\\shortstack{{{}\\\\{}}}", cell.first, cell.second);
    text += fmt::format("\\node at ({}.5,{}.5) {{{}}};\n", i % columns, i / columns, shown);
  }
  return text;
}

// Hairlines between the elements of a cell.
std::string elements(const Picture& picture) {
  const int rows = picture.rows.cells;
  const int columns = picture.columns.cells;
  std::string text;
  if (picture.columns.step > 1)
    text += fmt::format("\\foreach \\i in {{1,...,{}}} \\draw[very thin,gray!40] (\\i/{},0) -- +(0,{});\n",
                        columns * picture.columns.step - 1, picture.columns.step, rows);
  if (picture.rows.step > 1)
    text += fmt::format("\\foreach \\i in {{1,...,{}}} \\draw[very thin,gray!40] (0,\\i/{}) -- +({},0);\n",
                        rows * picture.rows.step - 1, picture.rows.step, columns);
  return text;
}

std::string grid(const Picture& picture) {
  const int rows = picture.rows.cells;
  const int columns = picture.columns.cells;
  std::string text = elements(picture);
  text += fmt::format("\\draw[thin] (0,0) grid ({},{});\n", columns, rows);
  text += fmt::format("\\draw[very thick] (0,0) rectangle ({},{});\n", columns, rows);
  for (int row = picture.rows.group; row > 0 && row < rows; row += picture.rows.group)
    text += fmt::format("\\draw[very thick] (0,{}) -- ({},{});\n", row, columns, row);
  for (int column = picture.columns.group; column > 0 && column < columns; column += picture.columns.group)
    text += fmt::format("\\draw[very thick] ({},0) -- ({},{});\n", column, column, rows);
  return text;
}

std::string labels(const Picture& picture) {
  std::string text;
  for (int row = 0; row < picture.rows.cells; ++row)
    text += fmt::format("\\node[gray,left] at (0,{}.5) {{{}}};\n", row, label(picture.rows, row));
  for (int column = 0; column < picture.columns.cells; ++column)
    text += fmt::format("\\node[gray,above] at ({}.5,0) {{{}}};\n", column, label(picture.columns, column));
  return text;
}

std::string dimensions(const Picture& picture) {
  std::string text;
  double beside = 1.2;
  double above = 1.0;
  for (const Dimension& dimension : picture.dimensions) {
    const std::string shown = escaped(dimension.label);
    if (dimension.along_rows) {
      text += fmt::format("\\draw[blue,thick,|->|] (-{0},{1}) -- node[left] {{{3}}} (-{0},{2});\n", beside,
                          dimension.from, dimension.to, shown);
      beside += 2.5;
    } else {
      text += fmt::format("\\draw[blue,thick,|->|] ({1},-{0}) -- node[above] {{{3}}} ({2},-{0});\n", above,
                          dimension.from, dimension.to, shown);
      above += 1.0;
    }
  }
  return text;
}

std::string below(const Picture& picture, const Palette& palette) {
  std::string text;
  double y = picture.rows.cells + 0.4;
  double x = 0;
  for (const LegendEntry& entry : picture.legend) {
    text += fmt::format("\\fill[{}] ({},{}) rectangle +(0.4,0.4); \\node[right] at ({},{}) {{{}}};\n",
                        palette.name(entry.fill), x, y, x + 0.4, y + 0.2, escaped(entry.meaning));
    x += 1.8;
  }
  if (!picture.legend.empty()) y += 0.8;
  for (const std::string& note : picture.notes) {
    text += fmt::format("\\node[right] at (0,{}) {{{}}};\n", y, escaped(note));
    y += 0.6;
  }
  return text;
}

}  // namespace

std::string to_latex(const std::vector<Picture>& pictures) {
  const Palette palette(pictures);
  std::string text =
      "\\documentclass[tikz,border=4mm]{standalone}\n"
      "\\usepackage[T1]{fontenc}\n" +
      palette.definitions() + "\\begin{document}\n";
  for (const Picture& picture : pictures) {
    const auto above = std::count_if(picture.dimensions.begin(), picture.dimensions.end(),
                                     [](const Dimension& dimension) { return !dimension.along_rows; });
    text += "\\begin{tikzpicture}[x=1cm,y=-1cm,font=\\ttfamily]\n";
    text += fmt::format("\\node[right] at (0,{}) {{\\textbf{{{}}}}};\n", -1 - above, escaped(picture.title));
    text += fills(picture, palette) + grid(picture) + texts(picture) + labels(picture);
    text += dimensions(picture) + below(picture, palette);
    text += "\\end{tikzpicture}\n";
  }
  return text + "\\end{document}\n";
}

}  // namespace tilewright::layout
