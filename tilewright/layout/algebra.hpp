// The algebra of layouts: simplify, compose, complement, divide, multiply, invert, partition, recast.
//
// Definitions follow CuTe C++. What a function cannot do exactly it refuses: @throws InvalidArgument that names the
// rule and the modes that broke it. No function returns a layout that breaks its post-condition. Below, R is the
// result. The same functions on layouts with a swizzle after them: composed_layout.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/layout/layout.hpp"
#include "tilewright/layout/tiler.hpp"

namespace tilewright::layout {

// Simplify.

/// The fewest modes with the same function on [0, size): merges neighbours, drops extents of 1. Flat.
/// @post R(i) == layout(i) for i < size, depth(R) <= 1
Layout coalesce(const Layout& layout);
/// coalesce, by mode where the profile is a tuple; modes past the profile are kept.
Layout coalesce(const Layout& layout, const IntTuple& profile);
/// As coalesce, and the same function past the end too: a last mode of extent 1 is kept, as one of extent 2.
/// @post R(i) == layout(i) for every i >= 0
Layout coalesce_past_end(const Layout& layout);
/// The layout with extents of 1 where strides are 0. @post congruent shapes, the same image
Layout filter_zeros(const Layout& layout);
/// coalesce of the layout without its stride-0 modes. @post the same image
Layout filter(const Layout& layout);
/// filter, by mode where the profile is a tuple; modes past the profile are kept.
Layout filter(const Layout& layout, const IntTuple& profile);

// Compose.

/// R with R(c) == a(b(c)) for every c < size(b), and compatible(b.shape(), R.shape()).
/// A stride of b that is a scaled basis leads through the mode of a which it names, any other through all of a.
/// Refused: a stride of b that neither divides nor is divided by a mode of a (stride divisibility), an extent of b that
/// crosses a mode of a elsewhere than at its end (shape divisibility), modes of b whose sum carries over a mode of a.
Layout composition(const Layout& a, const Layout& b);
/// By mode; modes of a past the tiler are dropped.
Layout composition(const Layout& a, const Tiler& b);

// Complement and invert. These need integer strides.

/// What `layout` misses of [0, cotarget), as far as whole copies of it fit its gaps. Refused: negative or overlapping
/// strides. @post R ordered, (layout, R) injective where layout is; where each stride is a multiple of what the smaller
/// ones span, (layout, R) takes every offset below cotarget (else gaps stay, as in CuTe)
Layout complement(const Layout& layout, std::int64_t cotarget);
/// In [0, cosize(filter(layout))).
Layout complement(const Layout& layout);
/// The longest R with layout(R(i)) == i for i < size(R) that whole modes of the coalesced layout make.
Layout right_inverse(const Layout& layout);
/// R with layout(R(layout(i))) == layout(i) for i < size(layout). Refused: overlapping strides, strides that are not
/// multiples of the smaller ones, a negative stride beside others.
Layout left_inverse(const Layout& layout);
/// The modes of stride 0, as a layout of indices. @post layout(R(i)) == 0, size(R) == size(layout) /
/// size(filter(layout))
Layout nullspace(const Layout& layout);
/// The longest R with a(R(i)) == i and b(R(i)) == i that right_inverse(b) leads to. Refused as composition is.
Layout max_common_layout(const Layout& a, const Layout& b);
/// How many contiguous elements correspond in both: size of max_common_layout.
std::int64_t max_common_vector(const Layout& a, const Layout& b);
/// The most contiguous elements such that aligned groups of so many stay together: gcd of the size of right_inverse and
/// of the strides outside of it.
std::int64_t max_alignment(const Layout& layout);
/// Up to n indices of a shape that divide it evenly, spread over its modes from the left: ((15,14), 6) -> (3,2):(1,15).
/// @post R increases, size(R) divides n, zipped_divide(make_layout(shape), R) is accepted
Layout domain_distribute(const IntTuple& shape, std::int64_t n);

// Divide: the tile, and where the tiles are. By mode where the tiler is a tuple; modes of a past it are kept whole.
// The last tile may hang over: 6:1 / 4:1 is (4,2):(1,4).

/// (the tile b of a, the rest of a): a o (b, complement(b, size(a))). Refused as these are, and a tile with gaps that
/// copies of it do not fill. @post R takes each offset of a, size(R) >= size(a)
Layout logical_divide(const Layout& a, const Tiler& b);
/// ((tiles), (rests)). Whole modes are rests: their tile is 1:0. With every mode tiled, mode 0 is composition(a, b).
Layout zipped_divide(const Layout& a, const Tiler& b);
/// ((tiles), rest, rest, ...)
Layout tiled_divide(const Layout& a, const Tiler& b);
/// (tile, tile, ..., rest, rest, ...)
Layout flat_divide(const Layout& a, const Tiler& b);

// Multiply: a block, and where its copies are. By mode where the tiler is a tuple; modes of a past it are kept.

/// (a, copies of a laid out as b): (a, complement(a, size(a) * cosize(b)) o b).
/// @post R's mode 0 is a; as many offsets as a has times b has
Layout logical_product(const Layout& a, const Tiler& b);
/// ((blocks), (copies)), ((blocks), copy, copy, ...) and (block, ..., copy, ...) as the divisions have them.
Layout zipped_product(const Layout& a, const Tiler& b);
Layout tiled_product(const Layout& a, const Tiler& b);
Layout flat_product(const Layout& a, const Tiler& b);
/// logical_product with mode i of a and mode i of b zipped: mode i is (a_i, b_i). A block of a for each element of b.
Layout blocked_product(const Layout& a, const Layout& b);
/// As blocked_product with (b_i, a_i): the elements of a are spread over copies of b.
Layout raked_product(const Layout& a, const Layout& b);
/// `block` repeated to cover `shape`, repetitions ordered as make_ordered_layout does (first mode fastest by default).
/// Refused: an extent of the block that does not divide the shape's. @post compatible(product_each(shape), R.shape())
Layout tile_to_shape(const Layout& block, const IntTuple& shape, const IntTuple& order = 0);

// Partition: zipped_divide, and one coordinate of the tiles or of the rests taken. Coordinates may hold `_`; those that
// are tuples may be shorter than what they index, and are then followed by `_`.

/// The tile at `coord` among the rests: (tile, tile, ..., rests that are `_`).
LayoutAndOffset inner_partition(const Layout& layout, const Tiler& tiler, const IntTuple& coord);
/// What `coord` of the tile is in each: (tiles that are `_`, rest, rest, ...).
LayoutAndOffset outer_partition(const Layout& layout, const Tiler& tiler, const IntTuple& coord);
/// inner_partition: local_tile(data, <32:1,64:1>, (block_m,block_n)).
LayoutAndOffset local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord);
/// The same with the modes of tiler and coordinate that `projection` names other than by `_`: (1,_,1) for the operand A
/// of an (M,N,K) tile.
LayoutAndOffset local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord, const IntTuple& projection);
/// What thread `index` of `threads` has of each group of as many elements: outer_partition by the threads' shape.
/// @throws InvalidArgument unless the threads' layout reaches the index.
LayoutAndOffset local_partition(const Layout& layout, const Layout& threads, std::int64_t index);
LayoutAndOffset local_partition(const Layout& layout, const Layout& threads, std::int64_t index,
                                const IntTuple& projection);

// Recast: the same bytes in other units. These need integer strides.

/// The layout in units of n elements. Refused: a stride that n neither divides nor is divided by.
Layout upcast(const Layout& layout, std::int64_t n);
/// The layout in units of 1/n element: modes of stride 1 or -1 grow. Refused: n > 1 with no such mode.
Layout downcast(const Layout& layout, std::int64_t n);
/// The layout of elements of old_bits in elements of new_bits: upcast and downcast by what the reduced ratio says.
Layout recast(const Layout& layout, std::int64_t old_bits, std::int64_t new_bits);

}  // namespace tilewright::layout
