// The post-conditions of the algebra on random layouts: a function meets them or refuses. The last test limits
// refusals.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <optional>

#include "layout_generators.hpp"
#include "postconditions.hpp"

namespace tilewright::layout {
namespace {

/// Random cases of each property: together they check more than 10^6 points.
[[maybe_unused]] const int kMoreCases = setenv("RC_PARAMS", "max_success=1500", 0);

/// The violated post-condition, or "" if there is none or the function refuses the layouts.
template <class Check>
std::string unless_refused(Check&& check) {
  try {
    return check();
  } catch (const InvalidArgument&) {
    return "";
  }
}

void holds(const std::string& broken) { RC_ASSERT(broken == ""); }

void coalesce_is_exact() { holds(coalesce_breaks(any_layout())); }

void composition_is_exact_or_refused() {
  const Layout a = any_layout();
  const Layout b = any_layout();
  holds(unless_refused([&] { return composition_breaks(a, b); }));
}

void composition_with_a_tile_is_accepted() {
  const auto e = *rc::gen::container<std::vector<std::int64_t>>(3, rc::gen::element<std::int64_t>(1, 2, 4, 8));
  const Layout a({e[0], e[1], e[2]}, {e[1] * e[2], 1, e[1]});
  const std::int64_t stride = std::int64_t{1} << *rc::gen::inRange(0, 8);
  RC_PRE(stride <= size(a));
  holds(composition_breaks(a, Layout(size(a) / stride, stride)));
}

void composition_with_coordinates_is_by_mode() {
  const Layout a = any_compact_layout();
  holds(composition_breaks(a, make_identity_layout(a.shape())));
}

void complement_completes_or_is_refused() {
  const Layout layout = any_layout();
  const auto cotarget = *rc::gen::inRange<std::int64_t>(1, 100);
  holds(unless_refused([&] { return complement_breaks(layout, cotarget); }));
}

void divide_rearranges_or_is_refused() {
  const Layout a = any_compact_layout();
  const Layout b = any_layout();
  holds(unless_refused([&] { return logical_divide_breaks(a, b); }));
}

void product_repeats_without_overlap() {
  const Layout a = any_compact_layout();
  const Layout b = any_compact_layout();
  holds(logical_product_breaks(a, b));
  RC_ASSERT(cosize(logical_product(a, b)) == size(a) * size(b));
}

void product_is_exact_or_refused() {
  const Layout a = any_layout();
  const Layout b = any_layout();
  holds(unless_refused([&] { return logical_product_breaks(a, b); }));
}

void blocked_and_raked_products_are_bijections() {
  const Layout a = any_compact_layout();
  const Layout b = any_compact_layout();
  for (const Layout& r : {blocked_product(a, b), raked_product(a, b)}) {
    RC_ASSERT(cosize(r) == size(a) * size(b));
    holds(left_inverse_breaks(r));
  }
}

void tile_to_shape_covers() {
  const Layout block = any_compact_layout();
  std::vector<std::int64_t> target;
  for (int i = 0; i < block.rank(); ++i) target.push_back(size(block.mode(i)) * *rc::gen::inRange<std::int64_t>(1, 4));
  const Layout r = tile_to_shape(block, IntTuple::tuple(target));
  RC_ASSERT(compatible(IntTuple::tuple(target), block.shape().is_leaf() ? IntTuple{r.shape()} : r.shape()));
  RC_ASSERT(cosize(r) == size(r));
  holds(right_inverse_breaks(r));
}

void right_inverse_inverts() { holds(right_inverse_breaks(any_layout())); }

void left_inverse_inverts_or_is_refused() {
  const Layout layout = any_layout();
  holds(unless_refused([&] { return left_inverse_breaks(layout); }));
}

void inverses_of_compact_layouts_are_complete() {
  const Layout layout = any_compact_layout();
  RC_ASSERT(size(right_inverse(layout)) == size(layout));
  const Layout left = left_inverse(layout);
  for (std::int64_t i = 0; i < size(layout); ++i) RC_ASSERT(left(layout(i)) == i);
}

void max_common_layout_is_in_both_or_refused() {
  const Layout a = any_compact_layout();
  const Layout b = any_layout();
  holds(unless_refused([&] { return max_common_layout_breaks(a, b); }));
}

void nullspace_is_lost() {
  const Layout layout = any_layout();
  holds(nullspace_breaks(layout));
  RC_ASSERT(image_size(filter_zeros(layout)) == image_size(layout));
  RC_ASSERT(image_size(filter(layout)) == image_size(layout));
}

void domain_distribute_divides() {
  holds(domain_distribute_breaks(*any_shape(), *rc::gen::inRange<std::int64_t>(1, 50)));
}

void likenesses_are_compact() {
  const Layout layout = any_layout();
  for (const Layout& r : {make_layout_like(layout), make_fragment_like(layout)}) {
    RC_ASSERT(r.shape() == layout.shape());
    RC_ASSERT(static_cast<std::int64_t>(image_size(r)) == cosize(r));
  }
  RC_ASSERT(cosize(make_layout_like(layout)) == size(filter_zeros(layout)));
}

void recast_and_back_is_the_same() {
  const Layout layout = any_compact_layout();
  RC_PRE(size(layout) > 1);
  const auto n = *rc::gen::element<std::int64_t>(2, 4);
  RC_ASSERT(upcast(downcast(layout, n), n) == layout);
  RC_ASSERT(recast(recast(layout, 8 * n, 8), 8, 8 * n) == layout);
}

void partitions_are_parts() {
  const Layout layout = make_layout({12, 8});
  const IntTuple tile{*rc::gen::element<std::int64_t>(1, 2, 3, 4, 6), *rc::gen::element<std::int64_t>(1, 2, 4)};
  const Layout rests = zipped_divide(layout, make_tiler(tile)).mode(1);
  std::size_t seen = 0;
  for (std::int64_t i = 0; i < size(rests); ++i) {
    const LayoutAndOffset part = inner_partition(layout, make_tiler(tile), i);
    RC_ASSERT(part.offset.value() == rests(i));
    RC_ASSERT(part.layout == composition(layout, make_tiler(tile)));
    seen += static_cast<std::size_t>(size(part.layout));
  }
  RC_ASSERT(seen == static_cast<std::size_t>(size(layout)));
  for (std::int64_t i = 0; i < product(tile); ++i)
    RC_ASSERT(outer_partition(layout, make_tiler(tile), i).layout.shape() == rests.shape());
}

const struct {
  const char* name;
  void (*property)();
} kProperties[] = {
    {"coalesce is exact", coalesce_is_exact},
    {"composition is exact or refused", composition_is_exact_or_refused},
    {"composition with a tile is accepted", composition_with_a_tile_is_accepted},
    {"composition with coordinates is by mode", composition_with_coordinates_is_by_mode},
    {"complement completes or is refused", complement_completes_or_is_refused},
    {"divide rearranges or is refused", divide_rearranges_or_is_refused},
    {"product repeats without overlap", product_repeats_without_overlap},
    {"product is exact or refused", product_is_exact_or_refused},
    {"blocked and raked products are bijections", blocked_and_raked_products_are_bijections},
    {"tile_to_shape covers", tile_to_shape_covers},
    {"right inverse inverts", right_inverse_inverts},
    {"left inverse inverts or is refused", left_inverse_inverts_or_is_refused},
    {"inverses of compact layouts are complete", inverses_of_compact_layouts_are_complete},
    {"max_common_layout is in both or refused", max_common_layout_is_in_both_or_refused},
    {"nullspace is lost", nullspace_is_lost},
    {"domain_distribute divides", domain_distribute_divides},
    {"likenesses are compact", likenesses_are_compact},
    {"recast and back is the same", recast_and_back_is_the_same},
    {"partitions are parts", partitions_are_parts},
};

TEST(AlgebraProperties, HoldAtMoreThanAMillionPoints) {
  for (const auto& [name, property] : kProperties) EXPECT_TRUE(rc::check(name, property)) << name;
  EXPECT_GE(points_checked(), 1'000'000);
}

/// All compositions of two modes with one mode of stride up to 8. A stride that advances both modes at once is refused,
/// as in CuTe, although the result is linear as long as neither mode wraps.
TEST(AlgebraProperties, CompositionsWithOneModeAreRefusedOnlyIfNotLinear) {
  int accepted = 0;
  for (std::int64_t first = 2; first <= 8; ++first) {
    for (std::int64_t extent = 2; extent <= 8; ++extent) {
      for (std::int64_t stride = 1; stride <= 8; ++stride) {
        const Layout a({first, 8}, {100, 1});
        const Layout b(extent, stride);
        const bool advances_both = stride > first && stride % first != 0;
        bool linear = !advances_both;
        for (std::int64_t i = 0; i < extent; ++i) linear = linear && a(b(i)) == a(stride) * i;
        const bool refused = refusal_of([&] { return composition(a, b); }) != "accepted";
        EXPECT_FALSE(refused && linear) << a << " o " << b;
        accepted += !refused;
      }
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace tilewright::layout
