// The classes Swizzle, Layout and ComposedLayout.
#include "tilewright/layout/layout.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "python/bindings/drawing.hpp"
#include "python/bindings/int_tuple.hpp"
#include "python/bindings/module.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/parse.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::python {

using layout::ComposedLayout;
using layout::IntTuple;
using layout::Layout;
using layout::Picture;
using layout::Swizzle;

namespace {

using Extents = std::tuple<int, int>;

std::string code_of(const IntTuple& t) { return nb::repr(to_python(t)).c_str(); }
std::string code_of(const Layout& l) { return fmt::format("Layout({}, {})", code_of(l.shape()), code_of(l.stride())); }
std::string code_of(const Swizzle& s) { return fmt::format("Swizzle({}, {}, {})", s.bits(), s.base(), s.shift()); }
std::string code_of(const ComposedLayout& l) {
  return fmt::format("ComposedLayout({}, {}, {})", code_of(l.swizzle), l.offset.value(), code_of(l.layout));
}

nb::object reduced(const Layout& l) {
  return nb::make_tuple(nb::type<Layout>(), nb::make_tuple(l.shape(), l.stride()));
}
nb::object reduced(const Swizzle& s) {
  return nb::make_tuple(nb::type<Swizzle>(), nb::make_tuple(s.bits(), s.base(), s.shift()));
}
nb::object reduced(const ComposedLayout& l) {
  return nb::make_tuple(nb::type<ComposedLayout>(), nb::make_tuple(l.swizzle, l.offset.value(), l.layout));
}

// The coordinate that the arguments of a call stand for: a single argument is the coordinate, several are its modes.
IntTuple coordinate_of(const nb::args& arguments) {
  const nb::handle whole = arguments.size() == 1 ? nb::handle(arguments[0]) : nb::handle(arguments);
  std::optional<Coord> coord = arguments.empty() ? std::nullopt : coord_of(whole);
  if (!coord)
    throw nb::type_error(
        fmt::format("a coordinate must consist of integers, tuples and None, got {}", nb::repr(arguments).c_str())
            .c_str());
  return std::move(coord->tree);
}

nb::object value_at(const Layout& l, const IntTuple& coord) { return to_python(coordinate(l, coord)); }
nb::object value_at(const ComposedLayout& l, const IntTuple& coord) { return nb::int_(l(coord)); }

template <class L>
nb::object applied(const L& l, const nb::args& arguments) {
  const IntTuple coord = coordinate_of(arguments);
  if (has_underscore(coord)) throw nb::next_overload();
  return value_at(l, coord);
}

template <class L>
L sliced(const L& l, const nb::args& arguments) {
  return slice(coordinate_of(arguments), l);
}

template <class L>
L mode_at(const L& l, int i) {
  const int rank = l.rank();
  if (i < -rank || i >= rank) throw nb::index_error(fmt::format("mode {} of a layout of rank {}", i, rank).c_str());
  return l.mode(i < 0 ? i + rank : i);
}

template <class L>
nb::object modes_of(const L& l) {
  nb::list modes;
  for (int i = 0; i < l.rank(); ++i) modes.append(l.mode(i));
  return nb::iter(modes);
}

ComposedLayout with_swizzle(const Layout& l) { return {Swizzle(), 0, l}; }
const ComposedLayout& with_swizzle(const ComposedLayout& l) { return l; }

struct DrawOptions {
  std::optional<std::string> title;
  std::optional<int> banks;
  std::optional<Extents> tile;
  std::optional<Extents> thread_values;
};

template <class L>
std::vector<Picture> pictures_of(const L& l, const DrawOptions& options) {
  const std::string title = options.title.value_or(to_string(l));
  if (options.banks.has_value() + options.tile.has_value() + options.thread_values.has_value() > 1)
    throw InvalidArgument("banks, tile and thread_values exclude each other");
  if (options.banks) return bank_pictures(with_swizzle(l), *options.banks, title).value_or_throw();
  if (options.tile) {
    const auto [rows, columns] = *options.tile;
    return {tiled_picture(with_swizzle(l), rows, columns, title).value_or_throw()};
  }
  if constexpr (std::same_as<L, Layout>) {
    if (options.thread_values) {
      const auto [rows, columns] = *options.thread_values;
      return {thread_value_picture(l, rows, columns, title).value_or_throw()};
    }
  }
  return offset_pictures(with_swizzle(l), title).value_or_throw();
}

// The drawing that a notebook displays for a layout, or None if the layout cannot be drawn.
template <class L>
std::optional<std::string> svg_of(const L& l) {
  try {
    return to_svg(pictures_of(l, {}));
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

// Binds what the three classes share: comparison, hash, pickling, printing and parsing.
template <class T>
void bind_value(nb::class_<T>& type, T (*parse)(std::string_view)) {
  type.def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const T& value) { return std::hash<std::string>()(to_string(value)); })
      .def("__str__", [](const T& value) { return to_string(value); })
      .def("__repr__", [](const T& value) { return code_of(value); })
      .def(
          "__reduce__", [](const T& value) { return reduced(value); },
          nb::sig("def __reduce__(self) -> tuple[object, ...]"))
      .def_static("parse", parse, "text"_a, "Parses CuTe's notation, which str() prints.");
}

template <class L>
void bind_function(nb::class_<L>& type) {
  constexpr bool is_plain = std::same_as<L, Layout>;
  type.def("__call__", applied<L>)
      .def("__call__", sliced<L>)
      .def("__len__", &L::rank)
      .def(
          "size", [](const L& l) { return size(l); }, "The number of coordinates.")
      .def(
          "cosize", [](const L& l) { return cosize(l); }, "The largest offset plus 1.")
      .def("__getitem__", mode_at<L>, "mode"_a)
      .def("__iter__", modes_of<L>,
           nb::sig(is_plain ? "def __iter__(self) -> collections.abc.Iterator[Layout]"
                            : "def __iter__(self) -> collections.abc.Iterator[ComposedLayout]"))
      .def("_repr_svg_", svg_of<L>)
      .def(
          "to_latex", [](const L& l) { return to_latex(pictures_of(l, {})); },
          "The drawing as a LaTeX document of the class standalone that needs only TikZ.");
}

void bind_swizzle(nb::module_& m) {
  nb::class_<Swizzle> type(
      m, "Swizzle",
      "CuTe's Swizzle, printed as Sw<bits,base,shift>. It maps an offset o to o ^ ((o & yyy) >> shift), where the mask "
      "yyy has `bits` ones from bit base + shift. If shift is negative, yyy has its ones from bit `base` and is "
      "shifted left by -shift. A swizzle is its own inverse.");
  type.def(nb::init<>(), "The identity, Sw<0,0,0>.")
      .def(nb::init<int, int, int>(), "bits"_a, "base"_a, "shift"_a)
      .def_prop_ro("bits", &Swizzle::bits)
      .def_prop_ro("base", &Swizzle::base)
      .def_prop_ro("shift", &Swizzle::shift)
      .def("__call__", &Swizzle::operator(), "offset"_a);
  bind_value<Swizzle>(type, [](std::string_view text) { return layout::parse_swizzle(text).value_or_throw(); });
}

void bind_plain_layout(nb::module_& m) {
  nb::class_<Layout> type(
      m, "Layout",
      "A function from coordinates to offsets: Layout((4, 8), (8, 1)) maps (i, j) to 8*i + j. Without a stride it is "
      "compact with the first mode fastest. Strides may be 0, negative, or scaled basis elements (E).\n\n"
      "layout(c) is the offset of the coordinate c, which has an integer for each leaf, or for each mode, or is a "
      "single "
      "index. If strides are scaled basis elements, layout(c) is a coordinate. If c contains None, layout(c) is the "
      "slice "
      "along these modes. layout[i] is mode i, and len(layout) is the rank.");
  type.def(
          "__init__", [](Layout* l, const IntTuple& shape) { new (l) Layout(layout::make_layout(shape)); }, "shape"_a)
      .def(nb::init<IntTuple, IntTuple>(), "shape"_a, "stride"_a)
      .def_prop_ro("shape", [](const Layout& l) { return l.shape(); })
      .def_prop_ro("stride", [](const Layout& l) { return l.stride(); })
      .def(
          "draw",
          [](const Layout& l, std::optional<std::string> title, std::optional<int> banks, std::optional<Extents> tile,
             std::optional<Extents> thread_values) {
            return Drawing{pictures_of(l, {std::move(title), banks, tile, thread_values})};
          },
          nb::kw_only(), "title"_a = nb::none(), "banks"_a = nb::none(), "tile"_a = nb::none(),
          "thread_values"_a = nb::none(),
          "Draws the offset of each coordinate; larger offsets are darker. banks=16 colours by bank of shared memory, "
          "for 16-bit elements. tile=(2, 4) colours by tile. thread_values=(16, 8) is for a layout that maps (thread, "
          "value) to the elements of a 16x8 tile, and shows which thread holds which element.");
  bind_value<Layout>(type, [](std::string_view text) { return layout::parse_layout(text).value_or_throw(); });
  bind_function(type);
}

void bind_composed_layout(nb::module_& m) {
  nb::class_<ComposedLayout> type(m, "ComposedLayout",
                                  "A layout followed by a swizzle: it maps c to swizzle(offset + layout(c)).");
  type.def(
          "__init__",
          [](ComposedLayout* made, const Swizzle& swizzle, std::int64_t offset, const Layout& l) {
            new (made) ComposedLayout{swizzle, offset, l};
          },
          "swizzle"_a, "offset"_a, "layout"_a)
      .def_prop_ro("swizzle", [](const ComposedLayout& l) { return l.swizzle; })
      .def_prop_ro("offset", [](const ComposedLayout& l) { return l.offset.value(); })
      .def_prop_ro("layout", [](const ComposedLayout& l) { return l.layout; })
      .def_prop_ro("shape", [](const ComposedLayout& l) { return l.shape(); })
      .def(
          "draw",
          [](const ComposedLayout& l, std::optional<std::string> title, std::optional<int> banks,
             std::optional<Extents> tile) {
            return Drawing{pictures_of(l, {std::move(title), banks, tile, std::nullopt})};
          },
          nb::kw_only(), "title"_a = nb::none(), "banks"_a = nb::none(), "tile"_a = nb::none(),
          "Draws the offset of each coordinate; see Layout.draw.");
  bind_value<ComposedLayout>(
      type, [](std::string_view text) { return layout::parse_composed_layout(text).value_or_throw(); });
  bind_function(type);
}

}  // namespace

void bind_layout(nb::module_& m) {
  bind_swizzle(m);
  bind_plain_layout(m);
  bind_composed_layout(m);
}

}  // namespace tilewright::python
