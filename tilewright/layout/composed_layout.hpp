// The algebra of layouts with a swizzle after them: each function is its namesake of algebra.hpp, on the layout inside.
#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::layout {

// Make. A swizzle moves to the left through what maps bits to bits.

/// swizzle o 0 o layout
ComposedLayout composition(const Swizzle& swizzle, const Layout& layout);
ComposedLayout composition(const Swizzle& swizzle, std::int64_t offset, const Layout& layout);
/// One swizzle after another, as composition of swizzles has it.
ComposedLayout composition(const Swizzle& swizzle, const ComposedLayout& layout);
/// a after the swizzle, as another swizzle after a: its bits mapped through a.
/// Refused: a layout that does not keep apart the bits the swizzle reads or changes. @post R(i) == a(swizzle(i))
ComposedLayout composition(const Layout& a, const Swizzle& swizzle);
/// Refused as its parts are, and with an offset other than 0. @post R(c) == a(b(c))
ComposedLayout composition(const Layout& a, const ComposedLayout& b);

int depth(const ComposedLayout& layout);
/// The cosize of the layout inside, as CuTe has it: the swizzle permutes whole blocks of that.
std::int64_t cosize(const ComposedLayout& layout);

// Structure, simplification, composition on the right.

ComposedLayout get(const ComposedLayout& layout, const Basis& path);
ComposedLayout flatten(const ComposedLayout& layout);
ComposedLayout take(const ComposedLayout& layout, int begin, int end);
ComposedLayout select(const ComposedLayout& layout, const std::vector<int>& modes);
ComposedLayout append(const ComposedLayout& layout, int rank, const Layout& x = Layout());
ComposedLayout group(const ComposedLayout& layout, int begin, int end);
ComposedLayout coalesce(const ComposedLayout& layout);
ComposedLayout coalesce(const ComposedLayout& layout, const IntTuple& profile);
ComposedLayout filter(const ComposedLayout& layout);
ComposedLayout filter(const ComposedLayout& layout, const IntTuple& profile);
ComposedLayout composition(const ComposedLayout& a, const Layout& b);
ComposedLayout composition(const ComposedLayout& a, const Tiler& b);
/// Refused as its parts are, and with an offset between two swizzles. @post R(c) == a(b(c))
ComposedLayout composition(const ComposedLayout& a, const ComposedLayout& b);

// Divide and multiply.

ComposedLayout logical_divide(const ComposedLayout& a, const Tiler& b);
ComposedLayout zipped_divide(const ComposedLayout& a, const Tiler& b);
ComposedLayout tiled_divide(const ComposedLayout& a, const Tiler& b);
ComposedLayout flat_divide(const ComposedLayout& a, const Tiler& b);
ComposedLayout logical_product(const ComposedLayout& a, const Tiler& b);
ComposedLayout zipped_product(const ComposedLayout& a, const Tiler& b);
ComposedLayout tiled_product(const ComposedLayout& a, const Tiler& b);
ComposedLayout flat_product(const ComposedLayout& a, const Tiler& b);
ComposedLayout blocked_product(const ComposedLayout& a, const Layout& b);
ComposedLayout raked_product(const ComposedLayout& a, const Layout& b);
ComposedLayout tile_to_shape(const ComposedLayout& block, const IntTuple& shape, const IntTuple& order = 0);

// Slice and partition: the offset goes into the offset of the result.

ComposedLayout slice(const IntTuple& coord, const ComposedLayout& layout);
ComposedLayout inner_partition(const ComposedLayout& layout, const Tiler& tiler, const IntTuple& coord);
ComposedLayout outer_partition(const ComposedLayout& layout, const Tiler& tiler, const IntTuple& coord);
ComposedLayout local_tile(const ComposedLayout& layout, const Tiler& tiler, const IntTuple& coord);
ComposedLayout local_partition(const ComposedLayout& layout, const Layout& threads, std::int64_t index);

/// The plain layout that a swizzled one is, where there is one: no two bits of its offsets are swizzled together.
/// nullopt where they are, and where modes or the offset add up across the swizzled bits.
/// @post layout(c) == r.offset + r.layout(c), compatible(layout.shape(), r.layout.shape())
std::optional<LayoutAndOffset> decay(const ComposedLayout& layout);

// Invert.

Layout complement(const ComposedLayout& layout, std::int64_t cotarget);
/// Refused: an offset other than 0, and as composition of a layout and a swizzle is. @post layout(R(i)) == i
ComposedLayout right_inverse(const ComposedLayout& layout);
/// Refused likewise. @post layout(R(layout(i))) == layout(i)
ComposedLayout left_inverse(const ComposedLayout& layout);
/// As of the layouts inside, and no longer than what a swizzle leaves in place, unless both have the same one.
/// @post a(R(i)) == a(R(0)) + i and b(R(i)) == b(R(0)) + i, the offsets being multiples of R's size
Layout max_common_layout(const ComposedLayout& a, const Layout& b);
Layout max_common_layout(const Layout& a, const ComposedLayout& b);
std::int64_t max_common_vector(const ComposedLayout& a, const Layout& b);
std::int64_t max_common_vector(const Layout& a, const ComposedLayout& b);
std::int64_t max_common_vector(const ComposedLayout& a, const ComposedLayout& b);
std::int64_t max_alignment(const ComposedLayout& layout);

// Recast.

/// All three parts in units of n. @throws InvalidArgument as the parts do, and unless n divides the offset.
ComposedLayout upcast(const ComposedLayout& layout, std::int64_t n);
ComposedLayout downcast(const ComposedLayout& layout, std::int64_t n);
ComposedLayout recast(const ComposedLayout& layout, std::int64_t old_bits, std::int64_t new_bits);

}  // namespace tilewright::layout
