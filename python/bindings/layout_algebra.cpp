// The functions on layouts, swizzles and layouts with a swizzle:
// tilewright/layout/{layout,algebra,composed_layout}.hpp.
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

// bind(type of layout, documentation): documented once, for the first of the two.
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
      "Compact, the first mode fastest; with a stride, that layout; of layouts, the layout with these modes.");
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
        if (layouts.empty()) throw InvalidArgument("a layout needs a mode");
        return layout::concatenate(std::move(layouts));
      },
      nb::sig("def make_layout(*modes: Layout) -> Layout"));
  m.def("make_row_major", layout::make_row_major, "shape"_a, "Compact, the last leaf fastest: (4, 8) -> (4,8):(8,1).");
  m.def("make_ordered_layout", layout::make_ordered_layout, "shape"_a, "order"_a,
        "Compact, modes of less order faster: ((4, 8), (1, 0)) -> (4,8):(8,1).");
  m.def("make_layout_like", layout::make_layout_like, "layout"_a,
        "Compact in the order of the layout's strides; modes of stride 0 stay so.");
  m.def("make_fragment_like", layout::make_fragment_like, "layout"_a,
        "A place to hold what the layout has: mode 0 compact, the others above it in the order of their strides.");
  m.def("make_identity_layout", layout::make_identity_layout, "shape"_a,
        "The layout of coordinates themselves: (4, 8) -> (4,8):(1@0,1@1).");
  m.def("make_swizzle", layout::make_swizzle, "source"_a, "target"_a,
        "The swizzle that reads the bits `source` and changes the bits `target`: each one run of as many ones.");
}

void bind_sizes(nb::module_& m) {
  for_both_kinds("The number of modes.", [&](auto kind, const char* documentation) {
    m.def(
        "rank", [](Of<decltype(kind)> l) { return l.rank(); }, "layout"_a, documentation);
  });
  for_both_kinds("The levels of parentheses.", [&](auto kind, const char* documentation) {
    m.def(
        "depth", [](Of<decltype(kind)> l) { return depth(l); }, "layout"_a, documentation);
  });
  for_both_kinds("The number of coordinates; with a mode, of that mode.", [&](auto kind, const char* documentation) {
    m.def(
        "size", [](Of<decltype(kind)> l) { return size(l); }, "layout"_a, documentation);
    m.def(
        "size", [](Of<decltype(kind)> l, const Basis& mode) { return product(get(l.shape(), mode)); }, "layout"_a,
        "mode"_a);
  });
  m.def(
      "size", [](const Swizzle& s) { return size(s); }, "swizzle"_a, "The block that it permutes within itself.");
  for_both_kinds("1 + the distance between the least and the largest offset.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "cosize", [](Of<decltype(kind)> l) { return cosize(l); }, "layout"_a, documentation);
                 });
  m.def("coshape", layout::coshape, "layout"_a, "The cosize, in each mode of the coordinates where strides are bases.");
  for_both_kinds("The most contiguous elements such that aligned groups of so many stay together.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "max_alignment", [](Of<decltype(kind)> l) { return max_alignment(l); }, "layout"_a,
                       documentation);
                 });
  m.def("source_bits", layout::source_bits, "swizzle"_a, "The bits that a swizzle reads.");
  m.def("target_bits", layout::target_bits, "swizzle"_a, "The bits that a swizzle changes.");
}

void bind_structure(nb::module_& m) {
  for_both_kinds("The mode of that number or path.", [&](auto kind, const char* documentation) {
    m.def(
        "get", [](Of<decltype(kind)> l, const Basis& mode) { return get(l, mode); }, "layout"_a, "mode"_a,
        documentation);
  });
  for_both_kinds("All leaves as one tuple of modes.", [&](auto kind, const char* documentation) {
    m.def(
        "flatten", [](Of<decltype(kind)> l) { return flatten(l); }, "layout"_a, documentation);
  });
  m.def(
      "unflatten", [](const Layout& l, const IntTuple& profile) { return unflatten(l, profile); }, "layout"_a,
      "profile"_a, "The leaves in the tree of the profile.");
  for_both_kinds("Modes begin to end - 1.", [&](auto kind, const char* documentation) {
    m.def(
        "take", [](Of<decltype(kind)> l, int begin, int end) { return take(l, begin, end); }, "layout"_a, "begin"_a,
        "end"_a, documentation);
  });
  for_both_kinds("The named modes, in that order.", [&](auto kind, const char* documentation) {
    m.def(
        "select", [](Of<decltype(kind)> l, const std::vector<int>& modes) { return select(l, modes); }, "layout"_a,
        "modes"_a, documentation);
  });
  for_both_kinds("Modes begin to end - 1 made one.", [&](auto kind, const char* documentation) {
    m.def(
        "group", [](Of<decltype(kind)> l, int begin, int end) { return group(l, begin, end); }, "layout"_a, "begin"_a,
        "end"_a, documentation);
  });
  m.def(
      "append", [](const Layout& l, const Layout& x) { return append(l, x); }, "layout"_a, "x"_a,
      "One mode more, x, at the end; with a rank, modes x until there are so many.");
  for_both_kinds("", [&](auto kind, const char*) {
    m.def(
        "append", [](Of<decltype(kind)> l, const Layout& x, int rank) { return append(l, rank, x); }, "layout"_a, "x"_a,
        "rank"_a);
  });
  m.def(
      "prepend", [](const Layout& l, const Layout& x) { return prepend(l, x); }, "layout"_a, "x"_a,
      "append at the front.");
  m.def(
      "prepend", [](const Layout& l, const Layout& x, int rank) { return prepend(l, rank, x); }, "layout"_a, "x"_a,
      "rank"_a);
  m.def(
      "replace", [](const Layout& l, int mode, const Layout& x) { return replace(l, mode, x); }, "layout"_a, "mode"_a,
      "x"_a, "Mode number `mode` replaced by x.");
  m.def(
      "reverse", [](const Layout& l) { return reverse(l); }, "layout"_a, "The modes from last to first.");
}

void bind_coordinates(nb::module_& m) {
  m.def(
      "coordinate", [](const Layout& l, const IntTuple& coord) { return coordinate(l, coord); }, "layout"_a, "coord"_a,
      "What the layout takes a coordinate to, whatever its strides: an offset, or a coordinate where they are bases.");
  m.def("hierarchical_coord", layout::hierarchical_coord, "layout"_a, "offset"_a,
        "The coordinate of an offset: layout(r) == offset. Refused: an offset that the layout does not reach.");
  m.def("flat_coord", layout::flat_coord, "layout"_a, "offset"_a, "The same, one integer for each mode.");
  for_both_kinds("The modes that the coordinate names by None. The offset of a swizzled layout has the rest.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "slice_", [](const Coord& coord, Of<decltype(kind)> l) { return slice(coord.tree, l); },
                       "coord"_a, "layout"_a, documentation);
                 });
  m.def(
      "slice_and_offset", [](const Coord& coord, const Layout& l) { return slice_and_offset(coord.tree, l); },
      "coord"_a, "layout"_a, "The slice and where it begins.");
  m.def(
      "dice", [](const Coord& coord, const Layout& l) { return dice(coord.tree, l); }, "coord"_a, "layout"_a,
      "The modes that the coordinate names otherwise than by None.");
}

void bind_simplification(nb::module_& m) {
  for_both_kinds("The fewest modes with the same function: R(i) == layout(i) for i < size. With a profile, by mode.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "coalesce", [](Of<decltype(kind)> l) { return coalesce(l); }, "layout"_a, documentation);
                   m.def(
                       "coalesce", [](Of<decltype(kind)> l, const IntTuple& profile) { return coalesce(l, profile); },
                       "layout"_a, "profile"_a);
                 });
  m.def("coalesce_past_end", layout::coalesce_past_end, "layout"_a,
        "coalesce with the same function past the end too: R(i) == layout(i) for every i >= 0.");
  for_both_kinds("coalesce without the modes of stride 0: the same image. With a profile, by mode.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "filter", [](Of<decltype(kind)> l) { return filter(l); }, "layout"_a, documentation);
                   m.def(
                       "filter", [](Of<decltype(kind)> l, const IntTuple& profile) { return filter(l, profile); },
                       "layout"_a, "profile"_a);
                 });
  m.def("filter_zeros", layout::filter_zeros, "layout"_a, "Extents of 1 where strides are 0: the same image.");
  m.def("decay", layout::decay, "layout"_a,
        "The plain layout, and its offset, that a swizzled one is: where no two bits of its offsets are swizzled "
        "together. Else None.");
}

void bind_composition(nb::module_& m) {
  const char* const documentation =
      "R with R(c) == a(b(c)) for every c < size(b), and the shape of b refined. A tuple of tilers composes by mode; "
      "modes of a past it are dropped. Refused, with the modes that broke the rule: where no such layout exists.";
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
      "What the layout misses of [0, cotarget), or else of [0, cosize), as far as whole copies of it fit its gaps. "
      "Refused: negative or overlapping strides.");
  for_both_kinds("", [&](auto kind, const char*) {
    m.def(
        "complement", [](Of<decltype(kind)> l, const IntTuple& cotarget) { return complement(l, product(cotarget)); },
        "layout"_a, "cotarget"_a);
  });
  for_both_kinds("The longest R with layout(R(i)) == i that whole modes of the layout make.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "right_inverse", [](Of<decltype(kind)> l) { return right_inverse(l); }, "layout"_a,
                       documentation);
                 });
  for_both_kinds("R with layout(R(layout(i))) == layout(i). Refused: overlapping strides.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "left_inverse", [](Of<decltype(kind)> l) { return left_inverse(l); }, "layout"_a, documentation);
                 });
  m.def("nullspace", layout::nullspace, "layout"_a,
        "The modes of stride 0, as a layout of indices: layout(R(i)) == 0.");
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
  common(plain, plain, "The longest R with a(R(i)) == i and b(R(i)) == i that right_inverse(b) leads to.");
  common(plain, composed, "");
  common(composed, plain, "");
  vector(plain, plain, "How many contiguous elements correspond in both: how wide a copy between them may be.");
  vector(plain, composed, "");
  vector(composed, plain, "");
  vector(composed, composed, "");
  m.def("domain_distribute", layout::domain_distribute, "shape"_a, "n"_a,
        "Up to n indices of a shape that divide it evenly: ((15, 14), 6) -> (3,2):(1,15).");
}

// verb(layout of either kind, tiler)
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
  bind_by_tiler(
      m, "logical_divide",
      "(the tile b of a, the rest of a): a o (b, complement(b, size(a))); by mode where the tiler is a tuple. "
      "The last tile may hang over. R takes each offset of a.",
      [](const auto& a, const Tiler& b) { return logical_divide(a, b); });
  bind_by_tiler(m, "zipped_divide", "((tiles), (rests)); with every mode tiled, mode 0 is composition(layout, tiler).",
                [](const auto& a, const Tiler& b) { return zipped_divide(a, b); });
  bind_by_tiler(m, "tiled_divide", "((tiles), rest, rest, ...)",
                [](const auto& a, const Tiler& b) { return tiled_divide(a, b); });
  bind_by_tiler(m, "flat_divide", "(tile, tile, ..., rest, rest, ...)",
                [](const auto& a, const Tiler& b) { return flat_divide(a, b); });
  bind_by_tiler(m, "logical_product",
                "(a, copies of a laid out as b): (a, complement(a, size(a) * cosize(b)) o b); by mode where the tiler "
                "is a tuple.",
                [](const auto& a, const Tiler& b) { return logical_product(a, b); });
  bind_by_tiler(m, "zipped_product", "((blocks), (copies))",
                [](const auto& a, const Tiler& b) { return zipped_product(a, b); });
  bind_by_tiler(m, "tiled_product", "((blocks), copy, copy, ...)",
                [](const auto& a, const Tiler& b) { return tiled_product(a, b); });
  bind_by_tiler(m, "flat_product", "(block, ..., copy, ...)",
                [](const auto& a, const Tiler& b) { return flat_product(a, b); });
  for_both_kinds("Mode i is (a_i, b_i): a block of a for each element of b.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "blocked_product", [](Of<decltype(kind)> a, const Layout& b) { return blocked_product(a, b); },
                       "a"_a, "b"_a, documentation);
                 });
  for_both_kinds("Mode i is (b_i, a_i): the elements of a are spread over copies of b.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "raked_product", [](Of<decltype(kind)> a, const Layout& b) { return raked_product(a, b); },
                       "a"_a, "b"_a, documentation);
                 });
  for_both_kinds(
      "The block repeated to cover a shape, modes of less order faster; by default the first. Refused: an "
      "extent of the block that does not divide the shape's.",
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
  for_both_kinds("The tile at `coord` among the rests of zipped_divide: of a layout, with the offset where it begins.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "inner_partition",
                       [](Of<decltype(kind)> l, const Tiler& tiler, const Coord& coord) {
                         return inner_partition(l, tiler, coord.tree);
                       },
                       "layout"_a, "tiler"_a, "coord"_a, documentation);
                 });
  for_both_kinds("What `coord` of the tile is in each tile: of a layout, with the offset where it begins.",
                 [&](auto kind, const char* documentation) {
                   m.def(
                       "outer_partition",
                       [](Of<decltype(kind)> l, const Tiler& tiler, const Coord& coord) {
                         return outer_partition(l, tiler, coord.tree);
                       },
                       "layout"_a, "tiler"_a, "coord"_a, documentation);
                 });
  for_both_kinds(
      "inner_partition: local_tile(data, (32, 64), (block_m, block_n)). With a projection, by the modes of "
      "tiler and coordinate that it does not name by None: (1, None, 1) for A of an (M, N, K) tile.",
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
  for_both_kinds("What thread `index` of a layout of threads has of each group of as many elements.",
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
  bind(std::type_identity<Layout>(), "layout",
       "The same bytes in units of n elements. Refused: a stride that n neither divides nor is divided by.",
       "The same bytes in units of 1/n element: modes of stride 1 or -1 grow.",
       "The layout of elements of old_bits in elements of new_bits.");
  bind(std::type_identity<ComposedLayout>(), "layout", "", "", "");
  bind(std::type_identity<Swizzle>(), "swizzle", "", "", "");
}

// A variable of index_code: its name, or its name and how many values it has.
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
      "layout(v0, v1, ...) as a short C expression: one variable for each mode, or one for all. A variable is "
      "its name, or (name, extent) where it has fewer values than its mode.",
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
      "The same of a layout with basis strides: one expression for each leaf of the coordinate.");
  m.def(
      "evaluate", [](std::string_view expression) { return layout::evaluate(expression).value_or_throw(); },
      "expression"_a,
      "The value of an expression in CuTe's notation: evaluate('zipped_divide((8,8):(8,1), (2,4))'). Refused, with the "
      "column: what is no expression, and what the algebra refuses.");
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
