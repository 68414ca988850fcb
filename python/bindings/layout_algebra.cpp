// The functions on Layout, Swizzle and ComposedLayout, from tilewright/layout/{layout,algebra,composed_layout}.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "python/bindings/int_tuple.hpp"
#include "python/bindings/module.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/expression.hpp"
#include "tilewright/layout/index_code.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::python {

using layout::Basis;
using layout::ComposedLayout;
using layout::IndexVariable;
using layout::IntTuple;
using layout::Layout;
using layout::Swizzle;
using layout::Tiler;

namespace {

// Calls bind(type of layout, documentation) for Layout and ComposedLayout. Only the first overload gets a docstring.
template <class Bind>
void for_both_kinds(const char* documentation, const Bind& bind) {
  bind(std::type_identity<Layout>(), documentation);
  bind(std::type_identity<ComposedLayout>(), "");
}

template <class Kind>
using Of = const typename Kind::type&;

void bind_makers(nb::module_& m) {
  m.def(
      "make_layout", [](const IntTuple& shape) { return layout::make_layout(shape); }, "shape"_a,
      "Without a stride, the compact layout with the first mode fastest; with a stride, Layout(shape, stride). "
      "make_layout(layout, layout, ...) is the layout with these modes.");
  m.def(
      "make_layout", [](const IntTuple& shape, const IntTuple& stride) { return layout::make_layout(shape, stride); },
      "shape"_a, "stride"_a);
  m.def(
      "make_layout",
      [](const nb::args& modes) {
        std::vector<Layout> layouts;
        for (const nb::handle mode : modes) {
          if (!nb::isinstance<Layout>(mode)) throw nb::next_overload();
          layouts.push_back(nb::cast<const Layout&>(mode));
        }
        if (layouts.empty()) throw InvalidArgument("make_layout() needs at least one mode");
        return layout::concatenate(std::move(layouts));
      },
      nb::sig("def make_layout(*modes: Layout) -> Layout"));
  m.def("make_row_major", layout::make_row_major, "shape"_a,
        "The compact layout with the last leaf fastest: (4, 8) -> (4,8):(8,1).");
  m.def("make_ordered_layout", layout::make_ordered_layout, "shape"_a, "order"_a,
        "The compact layout with the mode of the smallest order fastest: ((4, 8), (1, 0)) -> (4,8):(8,1).");
  m.def("make_layout_like", layout::make_layout_like, "layout"_a,
        "The compact layout with the modes in the order of `layout`'s strides; modes of stride 0 keep it.");
  m.def("make_fragment_like", layout::make_fragment_like, "layout"_a,
        "The compact layout of a register fragment for `layout`: mode 0 is fastest, and the other modes follow in the "
        "order of their strides.");
  m.def("make_identity_layout", layout::make_identity_layout, "shape"_a,
        "The layout that maps each coordinate to itself: (4, 8) -> (4,8):(1@0,1@1).");
  m.def("make_swizzle", layout::make_swizzle, "source"_a, "target"_a,
        "The swizzle that XORs the bits of mask `source` into the bits of mask `target`. Each mask is one run of ones, "
        "and both have the same number of ones.");
}

void bind_sizes(nb::module_& m) {
  for_both_kinds("The number of modes.", [&](auto kind, const char* documentation) {
    m.def(
        "rank", [](Of<decltype(kind)> l) { return l.rank(); }, "layout"_a, documentation);
  });
  for_both_kinds("The depth of the shape's hierarchy.", [&](auto kind, const char* documentation) {
    m.def(
        "depth", [](Of<decltype(kind)> l) { return depth(l); }, "layout"_a, documentation);
  });
  for_both_kinds("The number of coordinates, of the layout or of one mode.", [&](auto kind, const char* documentation) {
    m.def(
        "size", [](Of<decltype(kind)> l) { return size(l); }, "layout"_a, documentation);
    m.def(
        "size", [](Of<decltype(kind)> l, const Basis& mode) { return product(get(l.shape(), mode)); }, "layout"_a,
        "mode"_a);
  });
  m.def(
      "size", [](const Swizzle& s) { return size(s); }, "swizzle"_a,
      "The size of the blocks of offsets that the swizzle permutes.");
  for_both_kinds("The largest offset minus the smallest, plus 1.", [&](auto kind, const char* documentation) {
    m.def(
        "cosize", [](Of<decltype(kind)> l) { return cosize(l); }, "layout"_a, documentation);
  });
  m.def("coshape", layout::coshape, "layout"_a,
        "The cosize; for scaled basis strides, of each mode of the coordinates.");
  for_both_kinds("The largest n such that aligned groups of n consecutive elements are contiguous in memory.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "max_alignment", [](Of<decltype(kind)> l) { return max_alignment(l); }, "layout"_a,
                       documentation);
                 });
  m.def("source_bits", layout::source_bits, "swizzle"_a, "The mask of the bits that a swizzle reads.");
  m.def("target_bits", layout::target_bits, "swizzle"_a, "The mask of the bits that a swizzle changes.");
}

void bind_structure(nb::module_& m) {
  for_both_kinds("The mode with the given number or path.", [&](auto kind, const char* documentation) {
    m.def(
        "get", [](Of<decltype(kind)> l, const Basis& mode) { return get(l, mode); }, "layout"_a, "mode"_a,
        documentation);
  });
  for_both_kinds("The layout with all leaves as modes of one flat tuple.", [&](auto kind, const char* documentation) {
    m.def(
        "flatten", [](Of<decltype(kind)> l) { return flatten(l); }, "layout"_a, documentation);
  });
  m.def(
      "unflatten", [](const Layout& l, const IntTuple& profile) { return unflatten(l, profile); }, "layout"_a,
      "profile"_a, "The leaves of a flat layout in the hierarchy of `profile`.");
  for_both_kinds("The modes from begin to end - 1.", [&](auto kind, const char* documentation) {
    m.def(
        "take", [](Of<decltype(kind)> l, int begin, int end) { return take(l, begin, end); }, "layout"_a, "begin"_a,
        "end"_a, documentation);
  });
  for_both_kinds("The given modes, in the given order.", [&](auto kind, const char* documentation) {
    m.def(
        "select", [](Of<decltype(kind)> l, const std::vector<int>& modes) { return select(l, modes); }, "layout"_a,
        "modes"_a, documentation);
  });
  for_both_kinds("Makes one mode of the modes from begin to end - 1.", [&](auto kind, const char* documentation) {
    m.def(
        "group", [](Of<decltype(kind)> l, int begin, int end) { return group(l, begin, end); }, "layout"_a, "begin"_a,
        "end"_a, documentation);
  });
  m.def(
      "append", [](const Layout& l, const Layout& x) { return append(l, x); }, "layout"_a, "x"_a,
      "Appends x as a mode; with `rank`, appends it until the result has that rank.");
  for_both_kinds("", [&](auto kind, const char*) {
    m.def(
        "append", [](Of<decltype(kind)> l, const Layout& x, int rank) { return append(l, rank, x); }, "layout"_a, "x"_a,
        "rank"_a);
  });
  m.def(
      "prepend", [](const Layout& l, const Layout& x) { return prepend(l, x); }, "layout"_a, "x"_a,
      "The same as append, at the front.");
  m.def(
      "prepend", [](const Layout& l, const Layout& x, int rank) { return prepend(l, rank, x); }, "layout"_a, "x"_a,
      "rank"_a);
  m.def(
      "replace", [](const Layout& l, int mode, const Layout& x) { return replace(l, mode, x); }, "layout"_a, "mode"_a,
      "x"_a, "Replaces mode number `mode` by x.");
  m.def(
      "reverse", [](const Layout& l) { return reverse(l); }, "layout"_a, "The modes from last to first.");
}

void bind_coordinates(nb::module_& m) {
  m.def(
      "coordinate", [](const Layout& l, const IntTuple& coord) { return coordinate(l, coord); }, "layout"_a, "coord"_a,
      "layout(coord): an offset, or a coordinate if strides are scaled basis elements.");
  m.def(
      "hierarchical_coord", [](const Layout& l, std::int64_t offset) { return hierarchical_coord(l, offset); },
      "layout"_a, "offset"_a, "The coordinate r with layout(r) == offset. Raises InvalidArgument if there is none.");
  m.def(
      "flat_coord", [](const Layout& l, std::int64_t offset) { return flat_coord(l, offset); }, "layout"_a, "offset"_a,
      "The same, with one integer for each mode.");
  for_both_kinds("The modes for which the coordinate is None. The other modes add to the offset of a ComposedLayout.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "slice_", [](const Coord& coord, Of<decltype(kind)> l) { return slice(coord.tree, l); },
                       "coord"_a, "layout"_a, documentation);
                 });
  m.def(
      "slice_and_offset", [](const Coord& coord, const Layout& l) { return slice_and_offset(coord.tree, l); },
      "coord"_a, "layout"_a, "The slice, and the offset at which it begins.");
  m.def(
      "dice", [](const Coord& coord, const Layout& l) { return dice(coord.tree, l); }, "coord"_a, "layout"_a,
      "The modes for which the coordinate is not None.");
}

void bind_simplification(nb::module_& m) {
  for_both_kinds(
      "The layout R with the fewest modes such that R(i) == layout(i) for i < size. With a profile, applied "
      "mode by mode.",
      [&](auto kind, const char* documentation) {
        m.def(
            "coalesce", [](Of<decltype(kind)> l) { return coalesce(l); }, "layout"_a, documentation);
        m.def(
            "coalesce", [](Of<decltype(kind)> l, const IntTuple& profile) { return coalesce(l, profile); }, "layout"_a,
            "profile"_a);
      });
  m.def("coalesce_past_end", layout::coalesce_past_end, "layout"_a,
        "Like coalesce, but R(i) == layout(i) also holds past the end, for every i >= 0.");
  for_both_kinds(
      "Removes the modes of stride 0 and coalesces; the image stays the same. With a profile, applied mode by "
      "mode.",
      [&](auto kind, const char* documentation) {
        m.def(
            "filter", [](Of<decltype(kind)> l) { return filter(l); }, "layout"_a, documentation);
        m.def(
            "filter", [](Of<decltype(kind)> l, const IntTuple& profile) { return filter(l, profile); }, "layout"_a,
            "profile"_a);
      });
  m.def("filter_zeros", layout::filter_zeros, "layout"_a,
        "Sets the extents of modes of stride 0 to 1; the image stays the same.");
  m.def("decay", layout::decay, "layout"_a,
        "The plain layout and the offset that are equal to a ComposedLayout, or None if there are none: they exist if "
        "the swizzle never combines two bits of an offset that both vary.");
}

void bind_composition(nb::module_& m) {
  const char* const documentation =
      "The layout R with R(c) == a(b(c)) for every c < size(b), whose shape refines that of b. A tuple of tilers is "
      "applied mode by mode; further modes of a are dropped. Raises InvalidArgument, with the offending modes, if no "
      "such layout exists.";
  m.def(
      "composition", [](const Layout& a, const Tiler& b) { return composition(a, b); }, "a"_a, "b"_a, documentation);
  const auto of = [&]<class A, class B>(std::type_identity<A>, std::type_identity<B>) {
    m.def(
        "composition", [](const A& a, const B& b) { return composition(a, b); }, "a"_a, "b"_a);
  };
  constexpr std::type_identity<Layout> plain;
  constexpr std::type_identity<ComposedLayout> composed;
  constexpr std::type_identity<Swizzle> swizzle;
  of(composed, std::type_identity<Tiler>());
  of(composed, composed);
  of(swizzle, plain);
  of(swizzle, composed);
  of(swizzle, swizzle);
  of(plain, swizzle);
  of(plain, composed);
}

void bind_inverses(nb::module_& m) {
  m.def(
      "complement", [](const Layout& l) { return complement(l); }, "layout"_a,
      "The layout whose offsets move copies of `layout` so that they fill its gaps and cover [0, cotarget); without "
      "cotarget, [0, cosize). Raises InvalidArgument for negative or overlapping strides.");
  for_both_kinds("", [&](auto kind, const char*) {
    m.def(
        "complement", [](Of<decltype(kind)> l, const IntTuple& cotarget) { return complement(l, product(cotarget)); },
        "layout"_a, "cotarget"_a);
  });
  for_both_kinds("The largest layout R, made of whole modes of `layout`, with layout(R(i)) == i.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "right_inverse", [](Of<decltype(kind)> l) { return right_inverse(l); }, "layout"_a,
                       documentation);
                 });
  for_both_kinds("The layout R with layout(R(layout(i))) == layout(i). Raises InvalidArgument for overlapping strides.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "left_inverse", [](Of<decltype(kind)> l) { return left_inverse(l); }, "layout"_a, documentation);
                 });
  m.def("nullspace", layout::nullspace, "layout"_a,
        "The layout R of the indices of all modes of stride 0: layout(R(i)) == 0.");
  const auto common = [&]<class A, class B>(std::type_identity<A>, std::type_identity<B>, const char* documentation) {
    m.def(
        "max_common_layout", [](const A& a, const B& b) { return max_common_layout(a, b); }, "a"_a, "b"_a,
        documentation);
  };
  const auto vector = [&]<class A, class B>(std::type_identity<A>, std::type_identity<B>, const char* documentation) {
    m.def(
        "max_common_vector", [](const A& a, const B& b) { return max_common_vector(a, b); }, "a"_a, "b"_a,
        documentation);
  };
  constexpr std::type_identity<Layout> plain;
  constexpr std::type_identity<ComposedLayout> composed;
  common(plain, plain, "The largest layout R, derived from right_inverse(b), with a(R(i)) == i and b(R(i)) == i.");
  common(plain, composed, "");
  common(composed, plain, "");
  vector(plain, plain,
         "The number of elements that are contiguous in both layouts, which a vectorized copy may move at once.");
  vector(plain, composed, "");
  vector(composed, plain, "");
  vector(composed, composed, "");
  m.def("domain_distribute", layout::domain_distribute, "shape"_a, "n"_a,
        "A layout of at most n indices that are spaced evenly over a shape: ((15, 14), 6) -> (3,2):(1,15).");
}

// Binds verb(layout, tiler) for Layout and ComposedLayout.
template <class Verb>
void bind_by_tiler(nb::module_& m, const char* name, const char* documentation, Verb verb) {
  m.def(
      name, [verb](const Layout& a, const Tiler& b) -> Layout { return verb(a, b); }, "layout"_a, "tiler"_a,
      documentation);
  m.def(
      name, [verb](const ComposedLayout& a, const Tiler& b) -> ComposedLayout { return verb(a, b); }, "layout"_a,
      "tiler"_a);
}

void bind_tiling(nb::module_& m) {
  bind_by_tiler(m, "logical_divide",
                "(tile, rest): a o (b, complement(b, size(a))) for layout a and tiler b, which takes on every offset "
                "of a. A tuple of tilers is applied mode by mode. The last tile may extend beyond a.",
                [](const auto& a, const Tiler& b) { return logical_divide(a, b); });
  bind_by_tiler(m, "zipped_divide",
                "logical_divide as ((tile, ...), (rest, ...)); mode 0 is composition(layout, tiler) if every mode is "
                "tiled.",
                [](const auto& a, const Tiler& b) { return zipped_divide(a, b); });
  bind_by_tiler(m, "tiled_divide", "logical_divide as ((tile, ...), rest, rest, ...).",
                [](const auto& a, const Tiler& b) { return tiled_divide(a, b); });
  bind_by_tiler(m, "flat_divide", "logical_divide as (tile, tile, ..., rest, rest, ...).",
                [](const auto& a, const Tiler& b) { return flat_divide(a, b); });
  bind_by_tiler(
      m, "logical_product",
      "(block, copies): (a, complement(a, size(a) * cosize(b)) o b) for layout a and tiler b, which repeats a "
      "for each element of b. A tuple of tilers is applied mode by mode.",
      [](const auto& a, const Tiler& b) { return logical_product(a, b); });
  bind_by_tiler(m, "zipped_product", "logical_product as ((block, ...), (copy, ...)).",
                [](const auto& a, const Tiler& b) { return zipped_product(a, b); });
  bind_by_tiler(m, "tiled_product", "logical_product as ((block, ...), copy, copy, ...).",
                [](const auto& a, const Tiler& b) { return tiled_product(a, b); });
  bind_by_tiler(m, "flat_product", "logical_product as (block, ..., copy, ...).",
                [](const auto& a, const Tiler& b) { return flat_product(a, b); });
  for_both_kinds("The product whose mode i is (a_i, b_i): it has a contiguous block a for each element of b.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "blocked_product", [](Of<decltype(kind)> a, const Layout& b) { return blocked_product(a, b); },
                       "a"_a, "b"_a, documentation);
                 });
  for_both_kinds("The product whose mode i is (b_i, a_i): the elements of a are interleaved with those of b.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "raked_product", [](Of<decltype(kind)> a, const Layout& b) { return raked_product(a, b); },
                       "a"_a, "b"_a, documentation);
                 });
  for_both_kinds(
      "Repeats the block to cover a shape, with the mode of the smallest order fastest; by default the first mode. "
      "Raises InvalidArgument if an extent of the block does not divide that of the shape.",
      [&](auto kind, const char* documentation) {
        m.def(
            "tile_to_shape",
            [](Of<decltype(kind)> block, const IntTuple& shape, const IntTuple& order) {
              return tile_to_shape(block, shape, order);
            },
            "block"_a, "shape"_a, "order"_a = 0, documentation);
      });
}

void bind_partitions(nb::module_& m) {
  for_both_kinds("The tile number `coord` of zipped_divide(layout, tiler); for a Layout, with the offset of the tile.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "inner_partition",
                       [](Of<decltype(kind)> l, const Tiler& tiler, const Coord& coord) {
                         return inner_partition(l, tiler, coord.tree);
                       },
                       "layout"_a, "tiler"_a, "coord"_a, documentation);
                 });
  for_both_kinds(
      "The element `coord` of every tile of zipped_divide(layout, tiler); for a Layout, with the offset of the "
      "first.",
      [&](auto kind, const char* documentation) {
        m.def(
            "outer_partition",
            [](Of<decltype(kind)> l, const Tiler& tiler, const Coord& coord) {
              return outer_partition(l, tiler, coord.tree);
            },
            "layout"_a, "tiler"_a, "coord"_a, documentation);
      });
  for_both_kinds(
      "The same as inner_partition, as in local_tile(data, (32, 64), (block_m, block_n)). A projection selects the "
      "modes of tiler and coordinate that apply to the layout; None skips a mode: (1, None, 1) for A with an (M, N, K) "
      "tile.",
      [&](auto kind, const char* documentation) {
        m.def(
            "local_tile",
            [](Of<decltype(kind)> l, const Tiler& tiler, const Coord& coord) {
              return local_tile(l, tiler, coord.tree);
            },
            "layout"_a, "tiler"_a, "coord"_a, documentation);
      });
  m.def(
      "local_tile",
      [](const Layout& l, const Tiler& tiler, const Coord& coord, const Coord& projection) {
        return local_tile(l, tiler, coord.tree, projection.tree);
      },
      "layout"_a, "tiler"_a, "coord"_a, "projection"_a);
  for_both_kinds("The elements that thread `index` holds when `layout` is tiled by the thread layout `threads`.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "local_partition",
                       [](Of<decltype(kind)> l, const Layout& threads, std::int64_t index) {
                         return local_partition(l, threads, index);
                       },
                       "layout"_a, "threads"_a, "index"_a, documentation);
                 });
  m.def(
      "local_partition",
      [](const Layout& l, const Layout& threads, std::int64_t index, const Coord& projection) {
        return local_partition(l, threads, index, projection.tree);
      },
      "layout"_a, "threads"_a, "index"_a, "projection"_a);
}

void bind_recasts(nb::module_& m) {
  const auto bind = [&]<class T>(std::type_identity<T>, const char* first, const char* up, const char* down,
                                 const char* bits) {
    m.def(
        "upcast", [](const T& t, std::int64_t n) { return upcast(t, n); }, nb::arg(first), "n"_a, up);
    m.def(
        "downcast", [](const T& t, std::int64_t n) { return downcast(t, n); }, nb::arg(first), "n"_a, down);
    m.def(
        "recast",
        [](const T& t, std::int64_t old_bits, std::int64_t new_bits) { return recast(t, old_bits, new_bits); },
        nb::arg(first), "old_bits"_a, "new_bits"_a, bits);
  };
  bind(
      std::type_identity<Layout>(), "layout",
      "The layout of the same memory in units of n elements. Raises InvalidArgument for a stride that neither divides "
      "n nor is divisible by it.",
      "The layout of the same memory in units of 1/n of an element: extents of modes of stride 1 or -1 are multiplied.",
      "The layout of the same memory for elements of new_bits instead of old_bits.");
  bind(std::type_identity<ComposedLayout>(), "layout", "", "", "");
  bind(std::type_identity<Swizzle>(), "swizzle", "", "", "");
}

// A variable of index_code: its name, or its name and its extent (the number of its values).
using Variable = std::variant<std::string, std::pair<std::string, std::int64_t>>;

std::vector<IndexVariable> variables_of(const std::vector<Variable>& variables) {
  std::vector<IndexVariable> result;
  for (const Variable& variable : variables) {
    if (const auto* name = std::get_if<std::string>(&variable)) {
      result.emplace_back(*name);
    } else {
      const auto& [text, extent] = std::get<1>(variable);
      result.emplace_back(text, extent);
    }
  }
  return result;
}

void bind_code(nb::module_& m) {
  for_both_kinds(
      "layout(v0, v1, ...) as a short C expression, with a variable for each mode or one for the whole layout. A "
      "variable is a name, or (name, extent) if it has fewer values than its mode.",
      [&](auto kind, const char* documentation) {
        m.def(
            "index_code",
            [](Of<decltype(kind)> l, const std::vector<Variable>& variables) {
              return index_code(l, variables_of(variables));
            },
            "layout"_a, "variables"_a, documentation);
      });
  m.def(
      "coordinate_code",
      [](const Layout& l, const std::vector<Variable>& variables) {
        return coordinate_code(l, variables_of(variables));
      },
      "layout"_a, "variables"_a,
      "The same for a layout with scaled basis strides: one expression for each leaf of the coordinate.");
  m.def(
      "evaluate", [](std::string_view expression) { return layout::evaluate(expression).value_or_throw(); },
      "expression"_a,
      "The value of an expression in CuTe's notation: evaluate('zipped_divide((8,8):(8,1), (2,4))'). Raises "
      "InvalidArgument, with the column, for a syntax error and for operations that have no exact result.");
}

}  // namespace

void bind_layout_algebra(nb::module_& m) {
  bind_makers(m);
  bind_sizes(m);
  bind_structure(m);
  bind_coordinates(m);
  bind_simplification(m);
  bind_composition(m);
  bind_inverses(m);
  bind_tiling(m);
  bind_partitions(m);
  bind_recasts(m);
  bind_code(m);
}

}  // namespace tilewright::python
