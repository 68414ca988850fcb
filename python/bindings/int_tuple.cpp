// Conversion of integer tuples between Python and C++, and the functions on them.
#include "python/bindings/int_tuple.hpp"

#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "python/bindings/module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::python {

using layout::Basis;
using layout::IntTuple;
using layout::Tiler;

namespace {

// Deeper tuples are refused, because the recursion over them could overflow the stack.
constexpr int max_depth = 64;

// Reads an int, or an object with __index__() such as NumPy's integers. Returns nullopt for a bool and other objects.
std::optional<std::int64_t> integer_of(nb::handle object) {
  if (PyBool_Check(object.ptr()) || !PyIndex_Check(object.ptr())) return std::nullopt;
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || value == std::numeric_limits<long long>::min())
    throw InvalidArgument(fmt::format("the integer {} does not fit in 63 bits", nb::str(number).c_str()));
  return value;
}

enum class Leaves { integers, underscores_too };

std::optional<IntTuple> tree_of(nb::handle object, Leaves leaves, int depth) {
  if (depth > max_depth) throw InvalidArgument(fmt::format("a tuple is nested more than {} deep", max_depth));
  if (object.is_none()) return leaves == Leaves::underscores_too ? std::optional(IntTuple(layout::_)) : std::nullopt;
  if (nb::isinstance<ScaledBasis>(object)) {
    const auto& basis = nb::cast<const ScaledBasis&>(object);
    return IntTuple::scaled_basis(basis.value, basis.mode);
  }
  if (!PyTuple_Check(object.ptr())) return integer_of(object);
  std::vector<IntTuple> modes;
  for (const nb::handle item : nb::borrow<nb::tuple>(object)) {
    std::optional<IntTuple> mode = tree_of(item, leaves, depth + 1);
    if (!mode) return std::nullopt;
    modes.push_back(*std::move(mode));
  }
  return IntTuple::tuple(std::move(modes));
}

std::optional<Tiler> tiler_of(nb::handle object, int depth) {
  if (depth > max_depth) throw InvalidArgument(fmt::format("a tiler is nested more than {} deep", max_depth));
  if (object.is_none()) return Tiler(layout::_);
  if (nb::isinstance<layout::Layout>(object)) return Tiler(nb::cast<const layout::Layout&>(object));
  if (!PyTuple_Check(object.ptr())) {
    const std::optional<std::int64_t> extent = integer_of(object);
    return extent ? std::optional(layout::make_tiler(*extent)) : std::nullopt;
  }
  std::vector<Tiler> modes;
  for (const nb::handle item : nb::borrow<nb::tuple>(object)) {
    std::optional<Tiler> mode = tiler_of(item, depth + 1);
    if (!mode) return std::nullopt;
    modes.push_back(*std::move(mode));
  }
  return Tiler::tuple(std::move(modes));
}

nb::object tuple_of(const std::vector<nb::object>& items) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  if (!tuple.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < items.size(); ++i)
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), nb::object(items[i]).release().ptr());
  return tuple;
}

void bind_scaled_basis(nb::module_& m) {
  nb::class_<ScaledBasis>(
      m, "ScaledBasis",
      "A scaled basis element, CuTe's ScaledBasis: ScaledBasis(64, 1) is 64@1, a stride of 64 along "
      "mode 1 of a coordinate. The mode is a number, or a path with the outermost mode first: (0, 2) "
      "is CuTe's @2@0.")
      .def(nb::init<std::int64_t, Basis>(), "value"_a, "mode"_a)
      .def_prop_ro("value", [](const ScaledBasis& b) { return b.value; })
      .def_prop_ro("mode", [](const ScaledBasis& b) { return b.mode; })
      .def(
          "__mul__",
          [](const ScaledBasis& b, std::int64_t n) {
            return ScaledBasis{layout::checked_product(b.value, n), b.mode};
          },
          nb::is_operator())
      .def(
          "__rmul__",
          [](const ScaledBasis& b, std::int64_t n) {
            return ScaledBasis{layout::checked_product(b.value, n), b.mode};
          },
          nb::is_operator())
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const ScaledBasis& b) { return nb::hash(nb::make_tuple(b.value, b.mode)); })
      .def("__str__", [](const ScaledBasis& b) { return to_string(IntTuple::scaled_basis(b.value, b.mode)); })
      .def("__repr__",
           [](const ScaledBasis& b) {
             return fmt::format("ScaledBasis({}, {})", b.value, nb::repr(to_python(b.mode)).c_str());
           })
      .def(
          "__reduce__",
          [](const ScaledBasis& b) { return nb::make_tuple(nb::type<ScaledBasis>(), nb::make_tuple(b.value, b.mode)); },
          nb::sig("def __reduce__(self) -> tuple[object, ...]"));
  m.def(
      "E",
      [](const Basis& mode) {
        return ScaledBasis{1, mode};
      },
      "mode"_a, "CuTe's E: the unit stride along a mode. 64 * E(1) is ScaledBasis(64, 1).");
}

void bind_arithmetic(nb::module_& m) {
  m.def("product", layout::product, "t"_a, "The product of all leaves, which is 1 for ().");
  m.def("product_each", layout::product_each, "t"_a, "The product of each mode: ((2, 2), 8) -> (4, 8).");
  m.def("inner_product", layout::inner_product, "a"_a, "b"_a, "The sum of products of corresponding leaves.");
  m.def("elem_scale", layout::elem_scale, "a"_a, "b"_a,
        "a with each leaf multiplied by the product of the corresponding element of b.");
  m.def("tuple_max", layout::tuple_max, "t"_a, "The largest leaf.");
  m.def(
      "prefix_product", [](const IntTuple& t, std::int64_t init) { return layout::prefix_product(t, init); }, "t"_a,
      "init"_a = 1, "Exclusive products from the left, in the profile of t: ((2, 3), 4) -> ((1, 2), 6).");
  m.def(
      "suffix_product", [](const IntTuple& t, std::int64_t init) { return layout::suffix_product(t, init); }, "t"_a,
      "init"_a = 1, "Exclusive products from the right, in the profile of t: ((2, 3), 4) -> ((12, 4), 1).");
  m.def("compact_order", layout::compact_order, "shape"_a, "order"_a,
        "The strides that make a shape compact, the mode with the smallest order fastest: ((4, 8), (1, 0)) -> (8, 1).");
  m.def("ceil_div", nb::overload_cast<const IntTuple&, const IntTuple&>(layout::ceil_div), "a"_a, "b"_a,
        "ceil(a / b) for shapes. An integer b divides the modes of a tuple a from left to right.");
  m.def("shape_div", layout::shape_div, "a"_a, "b"_a,
        "a / b for shapes. For integers it is ceil(a / b), and an error if neither divides the other.");
  m.def("make_basis_like", layout::make_basis_like, "shape"_a,
        "The basis elements of a shape's coordinates: (4, 8) -> (1@0, 1@1).");
  m.def("as_arithmetic_tuple", layout::as_arithmetic_tuple, "t"_a,
        "The coordinate that a scaled basis element stands for: 5@1 -> (0, 5). Other values are returned unchanged.");
}

void bind_comparisons(nb::module_& m) {
  m.def("congruent", layout::congruent, "a"_a, "b"_a,
        "Whether a and b have the same hierarchy; the values of the leaves may differ.");
  m.def("weakly_congruent", layout::weakly_congruent, "a"_a, "b"_a, "Whether the hierarchy of b refines that of a.");
  m.def("compatible", layout::compatible, "a"_a, "b"_a, "Whether every coordinate of a is also a coordinate of b.");
  m.def("evenly_divides", layout::evenly_divides, "shape"_a, "tile"_a,
        "Whether the tile divides the shape, so that no tile extends beyond it.");
  m.def("elem_less", layout::elem_less, "a"_a, "b"_a,
        "Whether every leaf of a is less than the corresponding leaf of b, which may have more modes.");
  m.def("elem_leq", layout::elem_leq, "a"_a, "b"_a, "not elem_less(b, a)");
  m.def("elem_gtr", layout::elem_gtr, "a"_a, "b"_a, "elem_less(b, a)");
  m.def("elem_geq", layout::elem_geq, "a"_a, "b"_a, "not elem_less(a, b)");
  m.def("lex_less", layout::lex_less, "a"_a, "b"_a, "Lexicographical comparison: the first mode that differs decides.");
  m.def("colex_less", layout::colex_less, "a"_a, "b"_a,
        "Colexicographical comparison: the last mode that differs decides.");
}

void bind_coordinates(nb::module_& m) {
  m.def(
      "crd2idx", [](const IntTuple& coord, const IntTuple& shape) { return layout::crd2idx(coord, shape); }, "coord"_a,
      "shape"_a,
      "The index of a coordinate in a shape, with the first mode fastest; with a stride, the offset. An integer "
      "coordinate for a tuple shape is an index into it. The last mode is not wrapped, so that an index past the end "
      "continues in it.");
  m.def(
      "crd2idx",
      [](const IntTuple& coord, const IntTuple& shape, const IntTuple& stride) {
        return layout::crd2idx(coord, shape, stride);
      },
      "coord"_a, "shape"_a, "stride"_a);
  m.def(
      "idx2crd", [](const IntTuple& index, const IntTuple& shape) { return layout::idx2crd(index, shape); }, "index"_a,
      "shape"_a,
      "The coordinate of an index, congruent to the shape: crd2idx(idx2crd(i, s), s) == i. With a stride, each leaf is "
      "(index / stride) % extent.");
  m.def(
      "idx2crd",
      [](const IntTuple& index, const IntTuple& shape, const IntTuple& stride) {
        return layout::idx2crd(index, shape, stride);
      },
      "index"_a, "shape"_a, "stride"_a);
  m.def("crd2crd", layout::crd2crd, "coord"_a, "src_shape"_a, "dst_shape"_a,
        "Converts a coordinate in src_shape to one in dst_shape: mode by mode if all three are tuples, else by index.");
}

void bind_structure(nb::module_& m) {
  m.def(
      "rank", [](const IntTuple& t) { return t.rank(); }, "t"_a, "The number of modes; a leaf has rank 1.");
  m.def(
      "depth", [](const IntTuple& t) { return layout::depth(t); }, "t"_a,
      "The depth of the hierarchy: 0 for a leaf, else one more than that of the deepest mode.");
  m.def("size", layout::product, "t"_a, "The number of coordinates, of the whole tuple or of one mode.");
  m.def(
      "size", [](const IntTuple& t, const Basis& mode) { return layout::product(layout::get(t, mode)); }, "t"_a,
      "mode"_a);
  m.def(
      "get", [](const IntTuple& t, const Basis& mode) { return layout::get(t, mode); }, "t"_a, "mode"_a,
      "The mode with the given number or path: get(((2, 3), 8), (0, 1)) is 3.");
  m.def(
      "flatten", [](const IntTuple& t) { return layout::flatten(t); }, "t"_a,
      "The flat tuple of all leaves; a leaf is returned unchanged.");
  m.def(
      "unflatten", [](const IntTuple& flat, const IntTuple& profile) { return layout::unflatten(flat, profile); },
      "flat"_a, "profile"_a, "The leaves of a flat tuple in the hierarchy of `profile`: the inverse of flatten.");
  m.def(
      "take", [](const IntTuple& t, int begin, int end) { return layout::take(t, begin, end); }, "t"_a, "begin"_a,
      "end"_a, "The modes from begin to end - 1.");
  m.def(
      "select", [](const IntTuple& t, const std::vector<int>& modes) { return layout::select(t, modes); }, "t"_a,
      "modes"_a, "The given modes, in the given order.");
  m.def(
      "append", [](const IntTuple& t, const IntTuple& x) { return layout::append(t, x); }, "t"_a, "x"_a,
      "Appends x as a mode; with `rank`, appends it until the result has that rank.");
  m.def(
      "append", [](const IntTuple& t, const IntTuple& x, int rank) { return layout::append(t, rank, x); }, "t"_a, "x"_a,
      "rank"_a);
  m.def(
      "prepend", [](const IntTuple& t, const IntTuple& x) { return layout::prepend(t, x); }, "t"_a, "x"_a,
      "The same as append, at the front.");
  m.def(
      "prepend", [](const IntTuple& t, const IntTuple& x, int rank) { return layout::prepend(t, rank, x); }, "t"_a,
      "x"_a, "rank"_a);
  m.def(
      "replace", [](const IntTuple& t, int mode, const IntTuple& x) { return layout::replace(t, mode, x); }, "t"_a,
      "mode"_a, "x"_a, "Replaces mode number `mode` by x.");
  m.def(
      "group", [](const IntTuple& t, int begin, int end) { return layout::group(t, begin, end); }, "t"_a, "begin"_a,
      "end"_a, "Makes one mode of the modes from begin to end - 1: group((2, 3, 5), 0, 2) is ((2, 3), 5).");
  m.def(
      "reverse", [](const IntTuple& t) { return layout::reverse(t); }, "t"_a,
      "The modes from last to first; modes within a mode keep their order.");
  m.def(
      "slice_", [](const Coord& coord, const IntTuple& t) { return layout::slice(coord.tree, t); }, "coord"_a, "t"_a,
      "The modes for which the coordinate is None: slice_((None, (1, None)), (4, (2, 3))) is (4, 3).");
  m.def(
      "dice", [](const Coord& coord, const IntTuple& t) { return layout::dice(coord.tree, t); }, "coord"_a, "t"_a,
      "The modes for which the coordinate is not None: dice((None, (1, None)), (4, (2, 3))) is (2,).");
}

}  // namespace

std::optional<IntTuple> int_tuple_of(nb::handle object) { return tree_of(object, Leaves::integers, 0); }

std::optional<Coord> coord_of(nb::handle object) {
  std::optional<IntTuple> tree = tree_of(object, Leaves::underscores_too, 0);
  return tree ? std::optional(Coord{*std::move(tree)}) : std::nullopt;
}

std::optional<Basis> basis_of(nb::handle object) {
  const auto child = [](const Basis& path, nb::handle mode) -> std::optional<Basis> {
    const std::optional<std::int64_t> number = integer_of(mode);
    if (!number) return std::nullopt;
    constexpr std::int64_t no_mode = 128;
    return path.child(static_cast<int>(std::clamp<std::int64_t>(*number, -1, no_mode)));
  };
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) return child(Basis(), object);
  std::optional<Basis> path = Basis();
  for (const nb::handle mode : nb::borrow(object)) {
    path = child(*path, mode);
    if (!path) break;
  }
  return path;
}

std::optional<Tiler> tiler_of(nb::handle object) { return tiler_of(object, 0); }

nb::object to_python(const IntTuple& t) {
  if (t.is_integer()) return nb::int_(t.value());
  if (t.is_underscore()) return nb::none();
  if (t.is_leaf()) return nb::cast(ScaledBasis{t.basis_value(), t.basis()});
  std::vector<nb::object> modes;
  for (int i = 0; i < t.rank(); ++i) modes.push_back(to_python(t[i]));
  return tuple_of(modes);
}

nb::object to_python(const Tiler& tiler) {
  if (tiler.is_whole()) return nb::none();
  if (tiler.is_layout()) return nb::cast(tiler.layout());
  std::vector<nb::object> modes;
  for (int i = 0; i < tiler.rank(); ++i) modes.push_back(to_python(tiler[i]));
  return tuple_of(modes);
}

nb::object to_python(const Basis& basis) {
  if (basis.depth() == 1) return nb::int_(basis[0]);
  std::vector<nb::object> modes;
  for (const int mode : basis) modes.push_back(nb::int_(mode));
  return tuple_of(modes);
}

nb::object to_python(const layout::LayoutAndOffset& part) {
  return tuple_of({nb::cast(part.layout), to_python(part.offset)});
}

void bind_int_tuple(nb::module_& m) {
  bind_scaled_basis(m);
  bind_arithmetic(m);
  bind_comparisons(m);
  bind_coordinates(m);
  bind_structure(m);
}

}  // namespace tilewright::python
