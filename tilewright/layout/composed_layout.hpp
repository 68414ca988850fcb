// Layout algebra of composed layouts (a swizzle after a layout). Each function applies its namesake in algebra.hpp to
// the inner layout.
#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::layout {

// Construction. A swizzle moves to the left of a layout that maps bits to bits.

/// swizzle o 0 o layout
ComposedLayout composition(const Swizzle& swizzle, const Layout& layout);
ComposedLayout composition(const Swizzle& swizzle, const Number& offset, const Layout& layout);
/// composition(swizzle, layout.swizzle) o layout.offset o layout.layout.
ComposedLayout composition(const Swizzle& swizzle, const ComposedLayout& layout);
/// a o swizzle as another swizzle after a, whose bits are the images under a of the bits of `swizzle`.
/// Refused: a layout that does not map the bits that the swizzle reads or changes to distinct bits.
/// @post R(i) == a(swizzle(i))
ComposedLayout composition(const Layout& a, const Swizzle& swizzle);
/// Refused as composition(a, b.swizzle) and composition(a, b.layout) are, and if the offset of b is not 0.
/// @post R(c) == a(b(c))
ComposedLayout composition(const Layout& a, const ComposedLayout& b);

int depth(const ComposedLayout& layout);
/// The cosize of the inner layout, as in CuTe.
std::int64_t cosize(const ComposedLayout& layout);

// Structure, coalesce, filter, composition with a layout on the right.

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
/// Refused as composition(a.layout, b) is, and if the offset of a is not 0 and b has a swizzle. @post R(c) == a(b(c))
ComposedLayout composition(const ComposedLayout& a, const ComposedLayout& b);

// Divides and products.

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

// Slices and partitions: their offset is added to the offset of the result.

ComposedLayout slice(const IntTuple& coord, const ComposedLayout& layout);
ComposedLayout inner_partition(const ComposedLayout& layout, const Tiler& tiler, const IntTuple& coord);
ComposedLayout outer_partition(const ComposedLayout& layout, const Tiler& tiler, const IntTuple& coord);
ComposedLayout local_tile(const ComposedLayout& layout, const Tiler& tiler, const IntTuple& coord);
ComposedLayout local_partition(const ComposedLayout& layout, const Layout& threads, const Number& index);

/// The layout without a swizzle that is the same function, if there is one: the swizzle XORs no two bits that both
/// vary. nullopt if it does, or if modes or the offset carry into the swizzled bits.
/// @post layout(c) == r.offset + r.layout(c), compatible(layout.shape(), r.layout.shape())
std::optional<LayoutAndOffset> decay(const ComposedLayout& layout);

// Complement and inverses.

Layout complement(const ComposedLayout& layout, const Number& cotarget);
/// Refused: an offset other than 0, and what composition of a layout and a swizzle refuses. @post layout(R(i)) == i
ComposedLayout right_inverse(const ComposedLayout& layout);
/// Refused as right_inverse. @post layout(R(layout(i))) == layout(i)
ComposedLayout left_inverse(const ComposedLayout& layout);
/// max_common_layout of the inner layouts, cut to the elements that a swizzle keeps contiguous, unless both have the
/// same swizzle and offset. @post a(R(i)) == a(R(0)) + i and b(R(i)) == b(R(0)) + i; a(R(0)) and b(R(0)) are multiples
/// of size(R)
Layout max_common_layout(const ComposedLayout& a, const Layout& b);
Layout max_common_layout(const Layout& a, const ComposedLayout& b);
std::int64_t max_common_vector(const ComposedLayout& a, const Layout& b);
std::int64_t max_common_vector(const Layout& a, const ComposedLayout& b);
std::int64_t max_common_vector(const ComposedLayout& a, const ComposedLayout& b);
std::int64_t max_alignment(const ComposedLayout& layout);

// Recast.

/// Swizzle, offset and layout for elements n times as large. Refused as the parts are, and unless n divides the offset.
ComposedLayout upcast(const ComposedLayout& layout, std::int64_t n);
ComposedLayout downcast(const ComposedLayout& layout, std::int64_t n);
ComposedLayout recast(const ComposedLayout& layout, std::int64_t old_bits, std::int64_t new_bits);

}  // namespace tilewright::layout
