// Layout algebra of composed layouts: most functions apply to the inner layout; inverses and compositions also map the
// swizzle.
#include "tilewright/layout/composed_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "tilewright/base/error.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/layout/conditions.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

/// `outer` with another inner layout.
ComposedLayout with_layout(const ComposedLayout& outer, Layout layout) {
  return {outer.swizzle, outer.offset, std::move(layout)};
}
ComposedLayout with_layout(const ComposedLayout& outer, LayoutAndOffset part) {
  return {outer.swizzle, outer.offset + part.offset.number(), std::move(part.layout)};
}

/// Number of bits of n.
int bit_width(std::int64_t n) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n))); }

/// a(1 << i) for each bit i of an index.
/// @throws InvalidArgument unless a is linear over bits: a(index) is the OR of the images of the index's bits, which
/// are disjoint.
std::vector<std::int64_t> images_of_bits(const Layout& a, const Swizzle& swizzle) {
  const auto refuse = [&](const char* why) {
    throw InvalidArgument(fmt::format("composition {} o {}: {}", to_string(a), to_string(swizzle), why));
  };
  Modes modes = integer_modes("composition with a swizzle", a);
  merge_past_end(modes);
  for (std::size_t i = 0; i + 1 < modes.size(); ++i) {
    if (!is_power_of_two(modes[i].extent.value())) refuse("an extent of the left side is not a power of two");
  }
  const int count = bit_width(std::max(size(a), size(swizzle)) - 1);
  std::vector<std::int64_t> images;
  std::int64_t taken = 0;
  for (int bit = 0; bit < count; ++bit) {
    images.push_back(a(std::int64_t{1} << bit));
    if (images.back() < 0 || (images.back() & taken) != 0)
      refuse("two bits of an index of the left side map to the same bit of the offset");
    taken |= images.back();
  }
  return images;
}

/// The largest number up to `vector` of elements that stay contiguous under the swizzle and the offset.
std::int64_t within_swizzle_base(std::int64_t vector, const ComposedLayout& layout) {
  const std::int64_t base = std::int64_t{1} << layout.swizzle.base();
  const std::int64_t kept = layout.swizzle.bits() == 0 ? vector : std::min(vector, base);
  return std::gcd(kept, layout.offset.divisor());
}

/// inverse o swizzle: the inverse of swizzle o layout.
/// @throws InvalidArgument if the offset is not 0, or if the swizzle maps an offset out of the domain of `inverse`.
ComposedLayout swizzled_inverse(const char* verb, const ComposedLayout& layout, const Layout& inverse) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(fmt::format("{} of {}: {}", verb, to_string(layout), why));
  };
  if (layout.offset != 0) refuse("the offset is not 0");
  const std::int64_t source = source_bits(layout.swizzle);
  const std::int64_t block = std::int64_t{1} << bit_width(target_bits(layout.swizzle));
  const bool swizzles = source != 0 && size(inverse) > (source & -source);
  if (swizzles && size(inverse) % block != 0)
    refuse(fmt::format("the swizzle maps offsets out of the {} offsets of the inner layout", size(inverse)));
  return composition(inverse, layout.swizzle);
}

}  // namespace

ComposedLayout composition(const Swizzle& swizzle, const Layout& layout) { return {swizzle, 0, layout}; }

ComposedLayout composition(const Swizzle& swizzle, const Number& offset, const Layout& layout) {
  return {swizzle, offset, layout};
}

ComposedLayout composition(const Swizzle& swizzle, const ComposedLayout& layout) {
  return {composition(swizzle, layout.swizzle), layout.offset, layout.layout};
}

ComposedLayout composition(const Layout& a, const Swizzle& swizzle) {
  const std::vector<std::int64_t> images = images_of_bits(a, swizzle);
  const auto image = [&](std::int64_t bit) {
    return images[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(bit)))];
  };
  std::int64_t from = source_bits(swizzle) & -source_bits(swizzle);
  std::int64_t to = target_bits(swizzle) & -target_bits(swizzle);
  std::int64_t source = 0;
  std::int64_t target = 0;
  for (int i = 0; i < swizzle.bits(); ++i, from <<= 1, to <<= 1) {
    if (image(to) == 0) continue;  // a does not depend on the changed bit
    const bool same_shift = target == 0 || image(to) * (source & -source) == image(from) * (target & -target);
    if (!is_power_of_two(image(from)) || !same_shift)
      throw InvalidArgument(
          fmt::format("composition {} o {}: bits {:#x} and {:#x} map to {:#x} and {:#x}, which no swizzle connects",
                      to_string(a), to_string(swizzle), from, to, image(from), image(to)));
    source |= image(from);
    target |= image(to);
  }
  return {make_swizzle(source, target), 0, a};
}

ComposedLayout composition(const Layout& a, const ComposedLayout& b) {
  if (b.offset != 0)
    throw InvalidArgument(
        fmt::format("composition {} o ({}): the offset of the right side is not 0", to_string(a), to_string(b)));
  return composition(composition(a, b.swizzle), b.layout);
}

int depth(const ComposedLayout& layout) { return depth(layout.layout); }
std::int64_t cosize(const ComposedLayout& layout) { return cosize(layout.layout); }

ComposedLayout get(const ComposedLayout& layout, const Basis& path) {
  return with_layout(layout, get(layout.layout, path));
}
ComposedLayout flatten(const ComposedLayout& layout) { return with_layout(layout, flatten(layout.layout)); }
ComposedLayout take(const ComposedLayout& layout, int begin, int end) {
  return with_layout(layout, take(layout.layout, begin, end));
}
ComposedLayout select(const ComposedLayout& layout, const std::vector<int>& modes) {
  return with_layout(layout, select(layout.layout, modes));
}
ComposedLayout append(const ComposedLayout& layout, int rank, const Layout& x) {
  return with_layout(layout, append(layout.layout, rank, x));
}
ComposedLayout group(const ComposedLayout& layout, int begin, int end) {
  return with_layout(layout, group(layout.layout, begin, end));
}
ComposedLayout coalesce(const ComposedLayout& layout) { return with_layout(layout, coalesce(layout.layout)); }
ComposedLayout coalesce(const ComposedLayout& layout, const IntTuple& profile) {
  return with_layout(layout, coalesce(layout.layout, profile));
}
ComposedLayout filter(const ComposedLayout& layout) { return with_layout(layout, filter(layout.layout)); }
ComposedLayout filter(const ComposedLayout& layout, const IntTuple& profile) {
  return with_layout(layout, filter(layout.layout, profile));
}
ComposedLayout composition(const ComposedLayout& a, const Layout& b) {
  return with_layout(a, composition(a.layout, b));
}
ComposedLayout composition(const ComposedLayout& a, const Tiler& b) { return with_layout(a, composition(a.layout, b)); }

ComposedLayout composition(const ComposedLayout& a, const ComposedLayout& b) {
  const ComposedLayout inner = composition(a.layout, b);
  if (a.offset != 0 && inner.swizzle.bits() != 0)
    throw InvalidArgument(
        fmt::format("composition ({}) o ({}): the offset of the left side is not 0", to_string(a), to_string(b)));
  return {composition(a.swizzle, inner.swizzle), a.offset, inner.layout};
}

ComposedLayout logical_divide(const ComposedLayout& a, const Tiler& b) {
  return with_layout(a, logical_divide(a.layout, b));
}
ComposedLayout zipped_divide(const ComposedLayout& a, const Tiler& b) {
  return with_layout(a, zipped_divide(a.layout, b));
}
ComposedLayout tiled_divide(const ComposedLayout& a, const Tiler& b) {
  return with_layout(a, tiled_divide(a.layout, b));
}
ComposedLayout flat_divide(const ComposedLayout& a, const Tiler& b) { return with_layout(a, flat_divide(a.layout, b)); }
ComposedLayout logical_product(const ComposedLayout& a, const Tiler& b) {
  return with_layout(a, logical_product(a.layout, b));
}
ComposedLayout zipped_product(const ComposedLayout& a, const Tiler& b) {
  return with_layout(a, zipped_product(a.layout, b));
}
ComposedLayout tiled_product(const ComposedLayout& a, const Tiler& b) {
  return with_layout(a, tiled_product(a.layout, b));
}
ComposedLayout flat_product(const ComposedLayout& a, const Tiler& b) {
  return with_layout(a, flat_product(a.layout, b));
}
ComposedLayout blocked_product(const ComposedLayout& a, const Layout& b) {
  return with_layout(a, blocked_product(a.layout, b));
}
ComposedLayout raked_product(const ComposedLayout& a, const Layout& b) {
  return with_layout(a, raked_product(a.layout, b));
}
ComposedLayout tile_to_shape(const ComposedLayout& block, const IntTuple& shape, const IntTuple& order) {
  return with_layout(block, tile_to_shape(block.layout, shape, order));
}

ComposedLayout slice(const IntTuple& coord, const ComposedLayout& layout) {
  return with_layout(layout, slice_and_offset(coord, layout.layout));
}
ComposedLayout inner_partition(const ComposedLayout& layout, const Tiler& tiler, const IntTuple& coord) {
  return with_layout(layout, inner_partition(layout.layout, tiler, coord));
}
ComposedLayout outer_partition(const ComposedLayout& layout, const Tiler& tiler, const IntTuple& coord) {
  return with_layout(layout, outer_partition(layout.layout, tiler, coord));
}
ComposedLayout local_tile(const ComposedLayout& layout, const Tiler& tiler, const IntTuple& coord) {
  return with_layout(layout, local_tile(layout.layout, tiler, coord));
}
ComposedLayout local_partition(const ComposedLayout& layout, const Layout& threads, const Number& index) {
  return with_layout(layout, local_partition(layout.layout, threads, index));
}

Layout complement(const ComposedLayout& layout, const Number& cotarget) { return complement(layout.layout, cotarget); }

ComposedLayout right_inverse(const ComposedLayout& layout) {
  return swizzled_inverse("right_inverse", layout, right_inverse(layout.layout));
}

ComposedLayout left_inverse(const ComposedLayout& layout) {
  return swizzled_inverse("left_inverse", layout, left_inverse(layout.layout));
}

Layout max_common_layout(const ComposedLayout& a, const Layout& b) {
  const Layout common = max_common_layout(a.layout, b);
  return composition(common, Layout(within_swizzle_base(size(common), a), 1));
}
Layout max_common_layout(const Layout& a, const ComposedLayout& b) { return max_common_layout(b, a); }

std::int64_t max_common_vector(const ComposedLayout& a, const Layout& b) {
  return within_swizzle_base(max_common_vector(a.layout, b), a);
}
std::int64_t max_common_vector(const Layout& a, const ComposedLayout& b) { return max_common_vector(b, a); }
std::int64_t max_common_vector(const ComposedLayout& a, const ComposedLayout& b) {
  const std::int64_t vector = max_common_vector(a.layout, b.layout);
  if (a.swizzle == b.swizzle && a.offset == b.offset) return vector;
  return within_swizzle_base(within_swizzle_base(vector, a), b);
}

std::int64_t max_alignment(const ComposedLayout& layout) {
  return within_swizzle_base(max_alignment(layout.layout), layout);
}

ComposedLayout upcast(const ComposedLayout& layout, std::int64_t n) {
  const auto refusal = [&] { return fmt::format("offset {} is not a multiple of {}", to_string(layout.offset), n); };
  if (n < 1) throw InvalidArgument(refusal());
  require(divides(n, layout.offset), refusal);
  return {upcast(layout.swizzle, n), layout.offset / n, upcast(layout.layout, n)};
}

ComposedLayout downcast(const ComposedLayout& layout, std::int64_t n) {
  return {downcast(layout.swizzle, n), layout.offset * n, downcast(layout.layout, n)};
}

ComposedLayout recast(const ComposedLayout& layout, std::int64_t old_bits, std::int64_t new_bits) {
  const std::int64_t unit = std::gcd(old_bits, new_bits);
  if (old_bits < 1 || new_bits < 1)
    throw InvalidArgument(fmt::format("recast of {} from {} to {} bits", to_string(layout), old_bits, new_bits));
  const ComposedLayout wide = upcast(layout, new_bits / unit);
  return old_bits == unit ? wide : downcast(wide, old_bits / unit);
}

}  // namespace tilewright::layout
