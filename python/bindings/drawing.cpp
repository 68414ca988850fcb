// The class Drawing: pictures for a terminal, a notebook, an SVG file or a LaTeX document.
#include "python/bindings/drawing.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <fstream>

#include "python/bindings/module.hpp"
#include "tilewright/base/error.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::python {
namespace {

std::string in_terminal(const Drawing& drawing) { return to_terminal(drawing.pictures, false); }

void save(const Drawing& drawing, const std::filesystem::path& path) {
  const bool is_svg = path.extension() == ".svg";
  if (!is_svg && path.extension() != ".tex")
    throw InvalidArgument(fmt::format("a drawing can be saved as .svg or .tex, got {}", path.string()));
  std::ofstream file(path, std::ios::binary);
  file << (is_svg ? to_svg(drawing.pictures) : to_latex(drawing.pictures));
  file.close();
  if (file) return;
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
  throw nb::python_error();
}

}  // namespace

std::string to_html(const Drawing& drawing) {
  return fmt::format("<div style=\"overflow-x:auto\">{}</div>", to_svg(drawing.pictures));
}

void bind_drawing(nb::module_& m) {
  nb::class_<Drawing>(
      m, "Drawing",
      "Pictures of layouts. A notebook displays them; print() draws them on the terminal; a + b puts two drawings side "
      "by side. Layout.draw() and ComposedLayout.draw() return it.")
      .def(
          "__add__",
          [](Drawing a, const Drawing& b) {
            a.pictures.insert(a.pictures.end(), b.pictures.begin(), b.pictures.end());
            return a;
          },
          nb::is_operator())
      .def("__str__", in_terminal)
      .def("__repr__", in_terminal)
      .def("_repr_svg_", [](const Drawing& drawing) { return to_svg(drawing.pictures); })
      .def("_repr_html_", to_html)
      .def(
          "to_svg", [](const Drawing& drawing) { return to_svg(drawing.pictures); }, "A self-contained SVG document.")
      .def(
          "to_latex", [](const Drawing& drawing) { return to_latex(drawing.pictures); },
          "A LaTeX document of the class standalone that needs only TikZ.")
      .def("save", save, "path"_a, nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
           "Writes an SVG or LaTeX file; the path must end in .svg or .tex.");
}

}  // namespace tilewright::python
