// The post-conditions of the algebra, over random layouts: exact or refused. The last test bounds what is refused.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <set>

#include "layout_generators.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::layout {
namespace {

template <class Verb>
std::optional<Layout> unless_refused(Verb&& verb) {
  try {
    return verb();
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

std::set<std::int64_t> image(const Layout& layout) {
  std::set<std::int64_t> offsets;
  for (std::int64_t i = 0; i < size(layout); ++i) offsets.insert(layout(i));
  return offsets;
}

void assert_composes(const Layout& r, const Layout& a, const Layout& b) {
  RC_ASSERT(compatible(b.shape(), r.shape()));
  for (std::int64_t i = 0; i < size(b); ++i) RC_ASSERT(r(i) == a(b(i)));
}

RC_GTEST_PROP(AlgebraProperties, CoalesceIsTheSameFunctionAndMinimal, ()) {
  const Layout layout = any_layout();
  const Layout r = coalesce(layout);
  RC_ASSERT(depth(r) <= 1);
  RC_ASSERT(size(r) == size(layout));
  for (std::int64_t i = 0; i < size(layout); ++i) RC_ASSERT(r(i) == layout(i));
  for (int i = 0; i + 1 < r.rank(); ++i)
    RC_ASSERT(size(r.mode(i)) * r.stride()[i].value() != r.stride()[i + 1].value());
}

RC_GTEST_PROP(AlgebraProperties, CompositionIsExactOrRefused, ()) {
  const Layout a = any_layout();
  const Layout b = any_layout();
  const auto r = unless_refused([&] { return composition(a, b); });
  if (r) assert_composes(*r, a, b);
}

RC_GTEST_PROP(AlgebraProperties, CompositionWithATileIsAccepted, ()) {
  const auto extents = *rc::gen::container<std::vector<std::int64_t>>(3, rc::gen::element<std::int64_t>(1, 2, 4, 8));
  const Layout a = make_layout({extents[0], extents[1], extents[2]}, {extents[1] * extents[2], 1, extents[1]});
  const std::int64_t total = size(a);
  const std::int64_t stride = std::int64_t{1} << *rc::gen::inRange(0, 8);
  RC_PRE(stride <= total);
  const Layout b = make_layout(total / stride, stride);
  assert_composes(composition(a, b), a, b);
}

RC_GTEST_PROP(AlgebraProperties, ComplementIsOrderedDisjointAndCovers, ()) {
  const Layout layout = any_layout();
  const auto cotarget = *rc::gen::inRange<std::int64_t>(1, 100);
  const auto r = unless_refused([&] { return complement(layout, cotarget); });
  if (!r) return;
  for (std::int64_t i = 1; i < size(*r); ++i) RC_ASSERT((*r)(i) > (*r)(i - 1));
  const std::set<std::int64_t> taken = image(layout);
  for (std::int64_t i = 1; i < size(*r); ++i) RC_ASSERT(!taken.contains((*r)(i)));
  RC_ASSERT(image(concatenate({layout, *r})).size() == taken.size() * static_cast<std::size_t>(size(*r)));
  RC_ASSERT(cosize(concatenate({layout, *r})) >= cotarget);
}

RC_GTEST_PROP(AlgebraProperties, DivideRearrangesAndItsTileIsTheComposition, ()) {
  const Layout a = any_compact_layout();
  const Layout b = any_layout();
  const auto r = unless_refused([&] { return logical_divide(a, b); });
  if (!r) return;
  assert_composes(*r, a, concatenate({b, complement(b, size(a))}));
  RC_ASSERT(r->mode(0) == composition(a, b));
}

RC_GTEST_PROP(AlgebraProperties, ProductRepeatsWithoutOverlap, ()) {
  const Layout a = any_compact_layout();
  const Layout b = any_compact_layout();
  const auto r = unless_refused([&] { return logical_product(a, b); });
  RC_ASSERT(r.has_value());
  RC_ASSERT(r->mode(0) == a);
  RC_ASSERT(image(*r).size() == static_cast<std::size_t>(size(a) * size(b)));
  RC_ASSERT(cosize(*r) == size(a) * size(b));
}

RC_GTEST_PROP(AlgebraProperties, BlockedAndRakedProductsAreBijections, ()) {
  const Layout a = any_compact_layout();
  const Layout b = any_compact_layout();
  const auto count = static_cast<std::size_t>(size(a) * size(b));
  RC_ASSERT(image(blocked_product(a, b)).size() == count);
  RC_ASSERT(image(raked_product(a, b)).size() == count);
}

RC_GTEST_PROP(AlgebraProperties, RightInverseInverts, ()) {
  const Layout layout = any_layout();
  const Layout r = right_inverse(layout);
  for (std::int64_t i = 0; i < size(r); ++i) RC_ASSERT(layout(r(i)) == i);
}

RC_GTEST_PROP(AlgebraProperties, InversesOfCompactLayoutsAreComplete, ()) {
  const Layout layout = any_compact_layout();
  RC_ASSERT(size(right_inverse(layout)) == size(layout));
  const Layout left = left_inverse(layout);
  for (std::int64_t i = 0; i < size(layout); ++i) RC_ASSERT(left(layout(i)) == i);
}

RC_GTEST_PROP(AlgebraProperties, LeftInverseInvertsOrIsRefused, ()) {
  const Layout layout = any_layout();
  const auto r = unless_refused([&] { return left_inverse(layout); });
  if (!r) return;
  for (std::int64_t i = 0; i < size(layout); ++i) RC_ASSERT(layout((*r)(layout(i))) == layout(i));
}

RC_GTEST_PROP(AlgebraProperties, UpcastCountsInLargerUnits, ()) {
  const Layout layout = any_compact_layout();
  const auto n = *rc::gen::element<std::int64_t>(2, 4);
  RC_ASSERT(upcast(downcast(layout, n), n) == layout);
}

/// Every composition of one mode, of strides up to 8, with two. A stride that advances both modes at once is refused
/// although it is linear as long as neither wraps; so does CuTe.
TEST(AlgebraProperties, CompositionsOfOneModeAreRefusedOnlyWhereNotLinear) {
  int accepted = 0;
  for (std::int64_t first = 2; first <= 8; ++first) {
    for (std::int64_t extent = 2; extent <= 8; ++extent) {
      for (std::int64_t stride = 1; stride <= 8; ++stride) {
        const Layout a({first, 8}, {100, 1});
        const Layout b(extent, stride);
        const bool advances_both = stride > first && stride % first != 0;
        bool linear = !advances_both;
        for (std::int64_t i = 0; i < extent; ++i) linear = linear && a(b(i)) == a(stride) * i;
        const bool refused = !unless_refused([&] { return composition(a, b); });
        EXPECT_FALSE(refused && linear) << a << " o " << b;
        accepted += !refused;
      }
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace tilewright::layout
