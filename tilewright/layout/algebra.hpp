// Layout algebra: coalesce, composition, complement, inverses, divide, product, partition, recast.
//
// Definitions follow CuTe C++. A function whose arguments do not meet its preconditions throws InvalidArgument that
// names the violated rule and the modes ("Refused" below); it never returns a layout that violates the post-condition.
// R is the result.
//
// Extents and strides may be launch values. A precondition that is not known for all their values is refused too, or
// recorded to be checked for each call if a ConditionRecorder exists (conditions.hpp); it is never assumed in silence.
// Modes merge or are dropped where the values of Numbers are known to allow it. The post-conditions hold for all launch
// values that meet the recorded conditions.
//
// composed_layout.hpp has the same functions for layouts with a swizzle.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/layout/layout.hpp"
#include "tilewright/layout/tiler.hpp"

namespace tilewright::layout {

// Coalesce and filter.

/// The layout with the fewest modes that is the same function on [0, size): merges adjacent modes, drops modes of
/// extent 1.
/// @post R(i) == layout(i) for i < size, depth(R) <= 1
Layout coalesce(const Layout& layout);
/// By-mode coalesce: each mode that is a leaf of the profile is coalesced. Modes past the profile are kept.
Layout coalesce(const Layout& layout, const IntTuple& profile);
/// coalesce that also preserves the function past the end, as CuTe's coalesce_x does: a last mode of extent 1 is kept,
/// with extent 2.
/// @post R(i) == layout(i) for every i >= 0
Layout coalesce_past_end(const Layout& layout);
/// Replaces the extent of every stride-0 mode by 1. @post R has a congruent shape and the same image
Layout filter_zeros(const Layout& layout);
/// Removes stride-0 modes and coalesces. @post R has the same image
Layout filter(const Layout& layout);
/// By-mode filter, as the by-mode coalesce.
Layout filter(const Layout& layout, const IntTuple& profile);

// Composition.

/// a o b: R(c) == a(b(c)) for every c < size(b), and compatible(b.shape(), R.shape()). A mode of b whose stride is a
/// scaled basis composes with the mode of a that the basis names, any other with all of a. Refused: a stride of b that
/// neither divides nor is divided by the extent of a mode of a (stride divisibility); an extent of b that does not
/// split evenly at the end of a mode of a (shape divisibility); modes of b whose coordinates in a mode of a add up to
/// its extent or more (carry).
Layout composition(const Layout& a, const Layout& b);
/// By-mode composition. Modes of a past the tiler are dropped.
Layout composition(const Layout& a, const Tiler& b);

// Complement and inverses. They need integer strides.

/// The complement of `layout` in [0, cotarget): its modes step over the offsets that `layout` does not reach.
/// Refused: negative strides, modes that overlap.
/// @post R is ordered. If `layout` is injective, so is (layout, R). If each stride of `layout` is a multiple of the
/// span of the smaller strides, (layout, R) reaches every offset below cotarget; otherwise gaps remain, as in CuTe.
Layout complement(const Layout& layout, const Number& cotarget);
/// complement(layout, cosize(filter(layout))).
Layout complement(const Layout& layout);
/// The right inverse: the longest R made of whole modes of the coalesced layout with layout(R(i)) == i for i < size(R).
Layout right_inverse(const Layout& layout);
/// The left inverse: layout(R(layout(i))) == layout(i) for i < size(layout), so R(layout(i)) == i if layout is
/// injective. Refused: modes that overlap, strides that are not multiples of the smaller ones, a negative stride among
/// several.
Layout left_inverse(const Layout& layout);
/// The indices that `layout` maps to 0 by its stride-0 modes.
/// @post layout(R(i)) == 0, size(R) == size(layout) / size(filter(layout))
Layout nullspace(const Layout& layout);
/// The longest prefix R of right_inverse(b) with a(R(i)) == i and b(R(i)) == i. Refused as composition is.
Layout max_common_layout(const Layout& a, const Layout& b);
/// The number of elements that are contiguous in both layouts in the same order: size(max_common_layout(a, b)).
std::int64_t max_common_vector(const Layout& a, const Layout& b);
/// The largest n such that every aligned group of n offsets is contiguous: the gcd of size(right_inverse(layout)) and
/// the strides that are not in the right inverse. For run-time numbers, the gcd of their divisors.
std::int64_t max_alignment(const Layout& layout);
/// A tile of at most n indices that divides the shape evenly, taken from its modes from left to right:
/// ((15,14), 6) -> (3,2):(1,15). @post R increases, size(R) divides n, zipped_divide(make_layout(shape), R) is accepted
Layout domain_distribute(const IntTuple& shape, std::int64_t n);

// Divides: (tile, rest). By-mode if the tiler is a tuple; modes of a past the tiler are kept.
// The last tile may exceed a: 6:1 / 4:1 is (4,2):(1,4).

/// a o (b, complement(b, size(a))): mode 0 is the tile, mode 1 the layout of tiles. Refused as composition and
/// complement are, and if b has gaps that its complement does not fill. @post R reaches each offset of a, size(R) >=
/// size(a)
Layout logical_divide(const Layout& a, const Tiler& b);
/// ((tile, tile, ...), (rest, rest, ...)). A mode with tiler `_` has tile 1:0. If every mode has a tile, mode 0 is
/// composition(a, b).
Layout zipped_divide(const Layout& a, const Tiler& b);
/// ((tile, tile, ...), rest, rest, ...)
Layout tiled_divide(const Layout& a, const Tiler& b);
/// (tile, tile, ..., rest, rest, ...)
Layout flat_divide(const Layout& a, const Tiler& b);

// Products: (block, copies of the block). By-mode if the tiler is a tuple; modes of a past the tiler are kept.

/// (a, complement(a, size(a) * cosize(b)) o b): mode 0 is a, mode 1 the layout of its copies, ordered as b.
/// @post R reaches as many offsets as a times those of b
Layout logical_product(const Layout& a, const Tiler& b);
/// ((block, ...), (copies, ...)), ((block, ...), copies, ...) and (block, ..., copies, ...), as for the divides.
Layout zipped_product(const Layout& a, const Tiler& b);
Layout tiled_product(const Layout& a, const Tiler& b);
Layout flat_product(const Layout& a, const Tiler& b);
/// logical_product whose mode i is (a_i, b_i): each element of b becomes a block a.
Layout blocked_product(const Layout& a, const Layout& b);
/// logical_product whose mode i is (b_i, a_i): the elements of a are interleaved with copies of b.
Layout raked_product(const Layout& a, const Layout& b);
/// `block` repeated to cover `shape`. The copies are ordered as by make_ordered_layout (first mode fastest by default).
/// Refused: an extent of the block that does not divide the shape's. @post compatible(product_each(shape), R.shape())
Layout tile_to_shape(const Layout& block, const IntTuple& shape, const IntTuple& order = 0);

// Partition: zipped_divide, then a slice at one coordinate of the tile or of the rest. A coordinate may contain `_`. A
// tuple that is shorter than the mode it indexes is extended by `_`.

/// The tile at coordinate `coord` of the rest: (tile, tile, ..., modes of the rest where coord is `_`).
LayoutAndOffset inner_partition(const Layout& layout, const Tiler& tiler, const IntTuple& coord);
/// The elements at coordinate `coord` of every tile: (modes of the tile where coord is `_`, rest, rest, ...).
LayoutAndOffset outer_partition(const Layout& layout, const Tiler& tiler, const IntTuple& coord);
/// inner_partition: local_tile(data, <32:1,64:1>, (block_m,block_n)).
LayoutAndOffset local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord);
/// local_tile with the modes of tiler and coordinate where `projection` is not `_`: (1,_,1) for operand A of an (M,N,K)
/// tile.
LayoutAndOffset local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord, const IntTuple& projection);
/// The elements of thread `index`: outer_partition by the shape of `threads`, at the coordinate that `threads` maps to
/// `index`. Refused: an index that `threads` does not reach.
LayoutAndOffset local_partition(const Layout& layout, const Layout& threads, const Number& index);
LayoutAndOffset local_partition(const Layout& layout, const Layout& threads, const Number& index,
                                const IntTuple& projection);

// Recast: the same memory with elements of another size. They need integer strides.

/// The layout of elements n times as large. Refused: a stride that neither divides n nor is a multiple of it.
Layout upcast(const Layout& layout, std::int64_t n);
/// The layout of elements n times as small: modes of stride 1 or -1 get n times the extent. Refused: n > 1 and no such
/// mode.
Layout downcast(const Layout& layout, std::int64_t n);
/// A layout of elements of old_bits as one of elements of new_bits: upcast, then downcast, by the reduced ratio.
Layout recast(const Layout& layout, std::int64_t old_bits, std::int64_t new_bits);

}  // namespace tilewright::layout
