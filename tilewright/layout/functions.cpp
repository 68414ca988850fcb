// The table of functions that expressions may call, in the order of the manual.
#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/overload_of.hpp"

namespace tilewright::layout {
namespace {

using Modes = std::vector<int>;
using Rows = std::vector<Function>;

// Limits append and prepend up to a rank, by which a short expression could make a large value.
int checked_rank(int rank) {
  constexpr int most = 64;
  if (rank > most) throw InvalidArgument(fmt::format("a rank is at most {} in an expression, got {}", most, rank));
  return rank;
}

LayoutAndOffset decayed(const ComposedLayout& layout) {
  std::optional<LayoutAndOffset> plain = decay(layout);
  if (!plain) throw InvalidArgument(fmt::format("{} is not a layout without a swizzle", to_string(layout)));
  return *std::move(plain);
}

// Parameters below: `t` is a tuple or the first operand, `l` a layout with or without a swizzle, `b` a tiler.

Rows constructions() {
  const auto of_shape = [](const IntTuple& t) { return make_layout(t); };
  const auto of_shape_and_stride = [](const IntTuple& t, const IntTuple& stride) { return make_layout(t, stride); };
  const auto ordered = [](const IntTuple& t, const IntTuple& order) { return make_ordered_layout(t, order); };
  return {
      {"make_layout",
       "a compact layout, first mode fastest; with strides, shape:stride; of layouts, their concatenation",
       {overload_of<IntTuple>(of_shape), overload_of<IntTuple, IntTuple>(of_shape_and_stride),
        overload_of_several<Layout>(concatenate)}},
      {"make_row_major", "a compact layout, last leaf fastest", {overload_of<IntTuple>(make_row_major)}},
      {"make_ordered_layout",
       "a compact layout, modes of smaller order faster",
       {overload_of<IntTuple, IntTuple>(ordered)}},
      {"make_layout_like",
       "a compact layout with modes in the order of the strides",
       {overload_of<Layout>(make_layout_like)}},
      {"make_fragment_like",
       "a compact layout, mode 0 fastest, the others in the order of the strides",
       {overload_of<Layout>(make_fragment_like)}},
      {"make_identity_layout",
       "the layout that maps a coordinate to itself",
       {overload_of<IntTuple>(make_identity_layout)}},
      {"make_basis_like", "the strides of the identity layout", {overload_of<IntTuple>(make_basis_like)}},
      {"make_tiler", "a tiler of contiguous extents", {overload_of<IntTuple>(make_tiler)}},
      {"make_swizzle",
       "the swizzle that reads the first bits and changes the second",
       {overload_of<std::int64_t, std::int64_t>(make_swizzle)}},
  };
}

Rows parts() {
  const auto part = [](const auto& t, const Basis& path) { return get(t, path); };
  const auto shape = [](const auto& l) { return l.shape(); };
  const auto shape_at = [](const auto& l, const Basis& path) { return get(l.shape(), path); };
  const auto stride = [](const Layout& l) { return l.stride(); };
  const auto stride_at = [](const Layout& l, const Basis& path) { return get(l.stride(), path); };
  const auto inner = [](const auto& l) { return l.layout; };
  const auto offset = [](const auto& l) { return IntTuple(l.offset); };
  return {
      {"shape", "the shape; with a path, that of a mode",
       join(overloads_of_layouts<>(shape), overloads_of_layouts<Basis>(shape_at))},
      {"stride",
       "the stride; with a path, that of a mode",
       {overload_of<Layout>(stride), overload_of<Layout, Basis>(stride_at)}},
      {"get", "the mode at a path: 1, (0,2)",
       join({overload_of<IntTuple, Basis>(part)}, overloads_of_layouts<Basis>(part))},
      {"layout",
       "the inner layout, without offset and swizzle",
       {overload_of<LayoutAndOffset>(inner), overload_of<ComposedLayout>(inner)}},
      {"offset",
       "the offset of a slice or a swizzled layout",
       {overload_of<LayoutAndOffset>(offset), overload_of<ComposedLayout>(offset)}},
      {"swizzle", "the swizzle of a swizzled layout", {overload_of<ComposedLayout>([](const auto& l) {
         return l.swizzle;
       })}},
      {"source_bits", "the bits that a swizzle reads", {overload_of<Swizzle>(source_bits)}},
      {"target_bits", "the bits that a swizzle changes", {overload_of<Swizzle>(target_bits)}},
  };
}

Rows structure() {
  const auto taken = [](const auto& t, int begin, int end) { return take(t, begin, end); };
  const auto selected = [](const auto& t, const Modes& modes) { return select(t, modes); };
  const auto grouped = [](const auto& t, int begin, int end) { return group(t, begin, end); };
  const auto flat = [](const auto& t) { return flatten(t); };
  const auto unflat = [](const auto& t, const IntTuple& profile) { return unflatten(t, profile); };
  const auto put = [](const auto& t, int i, const auto& x) { return replace(t, i, x); };
  const auto reversed = [](const auto& t) { return reverse(t); };
  return {
      {"flatten", "the leaves as a flat tuple", join({overload_of<IntTuple>(flat)}, overloads_of_layouts<>(flat))},
      {"unflatten",
       "the leaves in a profile",
       {overload_of<IntTuple, IntTuple>(unflat), overload_of<Layout, IntTuple>(unflat)}},
      {"take", "modes begin to end - 1",
       join({overload_of<IntTuple, int, int>(taken)}, overloads_of_layouts<int, int>(taken))},
      {"select", "the named modes, in that order",
       join({overload_of<IntTuple, Modes>(selected)}, overloads_of_layouts<Modes>(selected))},
      {"group", "modes begin to end - 1 made one",
       join({overload_of<IntTuple, int, int>(grouped)}, overloads_of_layouts<int, int>(grouped))},
      {"replace", "mode i by x", {overload_of<IntTuple, int, IntTuple>(put), overload_of<Layout, int, Layout>(put)}},
      {"reverse", "the modes from last to first", {overload_of<IntTuple>(reversed), overload_of<Layout>(reversed)}},
  };
}

Rows extension() {
  const auto with = [](const auto& t, const auto& x) { return append(t, x); };
  const auto up_to = [](const auto& l, int rank) { return append(l, checked_rank(rank)); };
  const auto up_to_with = [](const auto& t, int rank, const auto& x) { return append(t, checked_rank(rank), x); };
  const auto before = [](const auto& t, const auto& x) { return prepend(t, x); };
  const auto before_up_to = [](const Layout& l, int rank) { return prepend(l, checked_rank(rank)); };
  const auto before_with = [](const auto& t, int rank, const auto& x) { return prepend(t, checked_rank(rank), x); };
  return {
      {"append", "x as one more mode; or modes of 1:0, or of x, up to a rank",
       join({overload_of<IntTuple, IntTuple>(with)}, overloads_of_layouts<int>(up_to),
            std::vector{overload_of<Layout, Layout>(with), overload_of<IntTuple, int, IntTuple>(up_to_with)},
            overloads_of_layouts<int, Layout>(up_to_with))},
      {"prepend",
       "append at the front",
       {overload_of<IntTuple, IntTuple>(before), overload_of<Layout, int>(before_up_to),
        overload_of<Layout, Layout>(before), overload_of<IntTuple, int, IntTuple>(before_with),
        overload_of<Layout, int, Layout>(before_with)}},
  };
}

Rows sizes() {
  const auto rank = [](const auto& t) { return t.rank(); };
  const auto deep = [](const auto& t) { return depth(t); };
  const auto count = [](const auto& l) { return size(l); };
  const auto count_at = [](const auto& l, const Basis& path) { return product(get(l.shape(), path)); };
  const auto reach = [](const auto& l) { return cosize(l); };
  return {
      {"rank", "number of modes", join({overload_of<IntTuple>(rank)}, overloads_of_layouts<>(rank))},
      {"depth", "levels of parentheses", join({overload_of<IntTuple>(deep)}, overloads_of_layouts<>(deep))},
      {"size", "number of coordinates; with a path, that of a mode",
       join({overload_of<IntTuple>(product)}, overloads_of_layouts<>(count), overloads_of_layouts<Basis>(count_at),
            std::vector{overload_of<Swizzle>(count)})},
      {"cosize", "1 + the distance between the smallest and the largest offset", overloads_of_layouts<>(reach)},
      {"coshape", "the cosize in each mode of the codomain", {overload_of<Layout>(coshape)}},
      {"max_alignment", "the largest n such that aligned groups of n offsets are contiguous",
       overloads_of_layouts<>([](const auto& l) { return max_alignment(l); })},
  };
}

Rows arithmetic() {
  const auto quotient = [](const IntTuple& t, const IntTuple& by) { return ceil_div(t, by); };
  const auto prefix = [](const IntTuple& t) { return prefix_product(t); };
  const auto suffix = [](const IntTuple& t) { return suffix_product(t); };
  return {
      {"product", "product of all leaves", {overload_of<IntTuple>(product)}},
      {"product_each", "product of each mode", {overload_of<IntTuple>(product_each)}},
      {"inner_product",
       "sum of the products of corresponding leaves",
       {overload_of<IntTuple, IntTuple>(inner_product)}},
      {"elem_scale",
       "each leaf times the product of the corresponding mode",
       {overload_of<IntTuple, IntTuple>(elem_scale)}},
      {"tuple_max", "the largest leaf", {overload_of<IntTuple>(tuple_max)}},
      {"prefix_product", "exclusive products from the left", {overload_of<IntTuple>(prefix)}},
      {"suffix_product", "exclusive products from the right", {overload_of<IntTuple>(suffix)}},
      {"compact_order",
       "strides of a compact layout, modes of smaller order faster",
       {overload_of<IntTuple, IntTuple>(compact_order)}},
      {"ceil_div", "quotient of shapes, rounded up", {overload_of<IntTuple, IntTuple>(quotient)}},
      {"shape_div", "quotient of shapes, exact", {overload_of<IntTuple, IntTuple>(shape_div)}},
      {"as_arithmetic_tuple", "a basis element as a tuple", {overload_of<IntTuple>(as_arithmetic_tuple)}},
  };
}

Rows comparisons() {
  const auto row = [](std::string_view name, std::string_view meaning, bool (*test)(const IntTuple&, const IntTuple&)) {
    return Function{name, meaning, {overload_of<IntTuple, IntTuple>(test)}};
  };
  return {
      row("congruent", "same profile", congruent),
      row("weakly_congruent", "the profile of the second refines that of the first", weakly_congruent),
      row("compatible", "every coordinate of the first is one of the second", compatible),
      row("evenly_divides", "tiles of the second shape fill the first exactly", evenly_divides),
      row("elem_less", "each leaf is less", elem_less),
      row("elem_leq", "not elem_less(b, a)", elem_leq),
      row("elem_gtr", "elem_less(b, a)", elem_gtr),
      row("elem_geq", "not elem_less(a, b)", elem_geq),
      row("lex_less", "less in lexicographical order", lex_less),
      row("colex_less", "less in colexicographical order", colex_less),
  };
}

Rows coordinates() {
  const auto index = [](const IntTuple& at, const IntTuple& shape) { return crd2idx(at, shape); };
  const auto offset = [](const IntTuple& at, const IntTuple& shape, const IntTuple& stride) {
    return coordinate(at, shape, stride);
  };
  const auto from_index = [](const IntTuple& i, const IntTuple& shape) { return idx2crd(i, shape); };
  const auto from_offset = [](const IntTuple& i, const IntTuple& shape, const IntTuple& stride) {
    return idx2crd(i, shape, stride);
  };
  const auto sliced = [](const IntTuple& at, const auto& t) { return slice(at, t); };
  const auto diced = [](const IntTuple& at, const auto& t) { return dice(at, t); };
  return {
      {"crd2idx",
       "the index of a coordinate in a shape; with strides, the offset",
       {overload_of<IntTuple, IntTuple>(index), overload_of<IntTuple, IntTuple, IntTuple>(offset)}},
      {"idx2crd",
       "the coordinate of an index in a shape; with strides, of an offset",
       {overload_of<IntTuple, IntTuple>(from_index), overload_of<IntTuple, IntTuple, IntTuple>(from_offset)}},
      {"crd2crd",
       "a coordinate of the first shape as one of the second",
       {overload_of<IntTuple, IntTuple, IntTuple>(crd2crd)}},
      {"hierarchical_coord", "the coordinate of an offset", {overload_of<Layout, std::int64_t>(hierarchical_coord)}},
      {"flat_coord",
       "the coordinate of an offset, one integer for each mode",
       {overload_of<Layout, std::int64_t>(flat_coord)}},
      {"slice",
       "the modes where a coordinate is _",
       {overload_of<IntTuple, IntTuple>(sliced), overload_of<IntTuple, Layout>(sliced),
        overload_of<IntTuple, ComposedLayout>(sliced)}},
      {"dice",
       "the modes where a coordinate is not _",
       {overload_of<IntTuple, IntTuple>(diced), overload_of<IntTuple, Layout>(diced),
        overload_of<IntTuple, Tiler>(diced)}},
      {"slice_and_offset",
       "a slice and its offset; also written L(2,_)",
       {overload_of<IntTuple, Layout>(slice_and_offset)}},
  };
}

Rows simplification() {
  const auto merged = [](const auto& l) { return coalesce(l); };
  const auto merged_by = [](const auto& l, const IntTuple& profile) { return coalesce(l, profile); };
  const auto filtered = [](const auto& l) { return filter(l); };
  const auto filtered_by = [](const auto& l, const IntTuple& profile) { return filter(l, profile); };
  return {
      {"coalesce", "the same function with the fewest modes; with a profile, by-mode",
       join(overloads_of_layouts<>(merged), overloads_of_layouts<IntTuple>(merged_by))},
      {"coalesce_past_end",
       "coalesce that preserves the function past the end",
       {overload_of<Layout>(coalesce_past_end)}},
      {"filter", "coalesce without stride-0 modes; with a profile, by-mode",
       join(overloads_of_layouts<>(filtered), overloads_of_layouts<IntTuple>(filtered_by))},
      {"filter_zeros", "extent 1 for stride-0 modes", {overload_of<Layout>(filter_zeros)}},
      {"decay",
       "a swizzled layout without its swizzle, if the function allows it",
       {overload_of<ComposedLayout>(decayed)}},
  };
}

Rows composition_and_inverses() {
  const auto compose = [](const auto& a, const auto& b) { return composition(a, b); };
  const auto missing = [](const auto& l, const IntTuple& cotarget) { return complement(l, product(cotarget)); };
  const auto missing_of = [](const Layout& l) { return complement(l); };
  const auto right = [](const auto& l) { return right_inverse(l); };
  const auto left = [](const auto& l) { return left_inverse(l); };
  const auto common = [](const auto& a, const auto& b) { return max_common_layout(a, b); };
  const auto vector = [](const auto& a, const auto& b) { return max_common_vector(a, b); };
  return {
      {"composition", "R(c) = a(b(c)); with a tiler, by-mode; also written a o b",
       join(overloads_of_layouts<Layout>(compose), overloads_of_layouts<Tiler>(compose),
            std::vector{overload_of<Swizzle, Layout>(compose), overload_of<Swizzle, ComposedLayout>(compose),
                        overload_of<Swizzle, Swizzle>(compose), overload_of<Layout, Swizzle>(compose),
                        overload_of<Layout, ComposedLayout>(compose)})},
      {"complement", "the layout of the offsets below a size that a layout does not reach",
       join({overload_of<Layout>(missing_of)}, overloads_of_layouts<IntTuple>(missing))},
      {"right_inverse", "the longest R with L(R(i)) = i", overloads_of_layouts<>(right)},
      {"left_inverse", "R with L(R(L(i))) = L(i)", overloads_of_layouts<>(left)},
      {"nullspace", "the indices of the stride-0 modes", {overload_of<Layout>(nullspace)}},
      {"max_common_layout", "the longest R with a(R(i)) = b(R(i)) = i",
       join(overloads_of_layouts<Layout>(common), std::vector{overload_of<Layout, ComposedLayout>(common)})},
      {"max_common_vector", "size of max_common_layout",
       join(overloads_of_layouts<Layout>(vector), overloads_of_layouts<ComposedLayout>(vector))},
      {"domain_distribute",
       "a tile of at most n indices that divides a shape evenly",
       {overload_of<IntTuple, std::int64_t>(domain_distribute)}},
  };
}

Rows divisions_and_products() {
  const auto by_tiler = [](std::string_view name, std::string_view meaning, auto function) {
    return Function{name, meaning, overloads_of_layouts<Tiler>(function)};
  };
  const auto block_by = [](std::string_view name, std::string_view meaning, auto function) {
    return Function{name, meaning, overloads_of_layouts<Layout>(function)};
  };
  const auto tiled = [](const auto& l, const IntTuple& shape) { return tile_to_shape(l, shape); };
  const auto tiled_in_order = [](const auto& l, const IntTuple& shape, const IntTuple& order) {
    return tile_to_shape(l, shape, order);
  };
  return {
      by_tiler("logical_divide", "(tile, rest); with a tuple, by-mode",
               [](const auto& l, const Tiler& b) { return logical_divide(l, b); }),
      by_tiler("zipped_divide", "((tile,...),(rest,...))",
               [](const auto& l, const Tiler& b) { return zipped_divide(l, b); }),
      by_tiler("tiled_divide", "((tile,...),rest,...)",
               [](const auto& l, const Tiler& b) { return tiled_divide(l, b); }),
      by_tiler("flat_divide", "(tile,...,rest,...)", [](const auto& l, const Tiler& b) { return flat_divide(l, b); }),
      by_tiler("logical_product", "(a, copies of a ordered as b); with a tuple, by-mode",
               [](const auto& l, const Tiler& b) { return logical_product(l, b); }),
      by_tiler("zipped_product", "((block,...),(copies,...))",
               [](const auto& l, const Tiler& b) { return zipped_product(l, b); }),
      by_tiler("tiled_product", "((block,...),copies,...)",
               [](const auto& l, const Tiler& b) { return tiled_product(l, b); }),
      by_tiler("flat_product", "(block,...,copies,...)",
               [](const auto& l, const Tiler& b) { return flat_product(l, b); }),
      block_by("blocked_product", "mode i is (a_i,b_i): each element of b becomes a block a",
               [](const auto& a, const Layout& b) { return blocked_product(a, b); }),
      block_by("raked_product", "mode i is (b_i,a_i): elements of a interleaved with copies of b",
               [](const auto& a, const Layout& b) { return raked_product(a, b); }),
      {"tile_to_shape", "a block repeated to cover a shape, in an order",
       join(overloads_of_layouts<IntTuple>(tiled), overloads_of_layouts<IntTuple, IntTuple>(tiled_in_order))},
  };
}

Rows partitions() {
  const auto inner = [](const auto& l, const Tiler& b, const IntTuple& at) { return inner_partition(l, b, at); };
  const auto outer = [](const auto& l, const Tiler& b, const IntTuple& at) { return outer_partition(l, b, at); };
  const auto tile = [](const auto& l, const Tiler& b, const IntTuple& at) { return local_tile(l, b, at); };
  const auto tile_of = [](const Layout& l, const Tiler& b, const IntTuple& at, const IntTuple& projection) {
    return local_tile(l, b, at, projection);
  };
  const auto share = [](const auto& l, const Layout& threads, std::int64_t i) {
    return local_partition(l, threads, i);
  };
  const auto share_of = [](const Layout& l, const Layout& threads, std::int64_t i, const IntTuple& projection) {
    return local_partition(l, threads, i, projection);
  };
  return {
      {"inner_partition", "the tile at a coordinate of the rest", overloads_of_layouts<Tiler, IntTuple>(inner)},
      {"outer_partition", "the elements at a coordinate of every tile", overloads_of_layouts<Tiler, IntTuple>(outer)},
      {"local_tile", "inner_partition; with a projection, of the modes where that is not _",
       join(overloads_of_layouts<Tiler, IntTuple>(tile),
            std::vector{overload_of<Layout, Tiler, IntTuple, IntTuple>(tile_of)})},
      {"local_partition", "the elements of thread i of a thread layout",
       join(overloads_of_layouts<Layout, std::int64_t>(share),
            std::vector{overload_of<Layout, Layout, std::int64_t, IntTuple>(share_of)})},
  };
}

Rows recasts() {
  const auto up = [](const auto& l, std::int64_t n) { return upcast(l, n); };
  const auto down = [](const auto& l, std::int64_t n) { return downcast(l, n); };
  const auto bits = [](const auto& l, std::int64_t from, std::int64_t to) { return recast(l, from, to); };
  const auto bits_first = [](std::int64_t from, std::int64_t to, const auto& l) { return recast(l, from, to); };
  return {
      {"upcast", "for elements n times as large",
       join({overload_of<Swizzle, std::int64_t>(up)}, overloads_of_layouts<std::int64_t>(up))},
      {"downcast", "for elements n times as small",
       join({overload_of<Swizzle, std::int64_t>(down)}, overloads_of_layouts<std::int64_t>(down))},
      {"recast", "for elements of another width: recast(16,32,L)",
       join({overload_of<std::int64_t, std::int64_t, Layout>(bits_first),
             overload_of<std::int64_t, std::int64_t, ComposedLayout>(bits_first),
             overload_of<std::int64_t, std::int64_t, Swizzle>(bits_first)},
            overloads_of_layouts<std::int64_t, std::int64_t>(bits))},
  };
}

}  // namespace

const std::vector<Function>& functions() {
  static const std::vector<Function> all = [] {
    Rows table;
    for (Rows (*rows)() : {constructions, parts, structure, extension, sizes, arithmetic, comparisons, coordinates,
                           simplification, composition_and_inverses, divisions_and_products, partitions, recasts}) {
      Rows some = rows();
      table.insert(table.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    return table;
  }();
  return all;
}

}  // namespace tilewright::layout
