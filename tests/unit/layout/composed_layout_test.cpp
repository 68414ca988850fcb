// Composed layouts: algebra of the inner layout, compositions and inverses with swizzles, decay.
#include "tilewright/layout/composed_layout.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "postconditions.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::layout {
namespace {

const ComposedLayout kAtom{Swizzle(3, 3, 3), 0,
                           Layout({8, 64}, {64, 1})};  // the K-major 128-byte swizzle atom of 16-bit elements

TEST(SwizzleBits, MakeAndCompose) {
  EXPECT_EQ(make_swizzle(0b1000, 0b0100), Swizzle(1, 2, 1));
  EXPECT_EQ(make_swizzle(0b11000000, 0b00000110), Swizzle(2, 1, 5));
  EXPECT_EQ(make_swizzle(0, 0), Swizzle());
  EXPECT_EQ(source_bits(Swizzle(3, 4, 3)), 0x380);
  EXPECT_EQ(target_bits(Swizzle(3, 4, 3)), 0x70);
  EXPECT_EQ(source_bits(Swizzle(2, 4, -3)), 0x30);
  EXPECT_THROW(make_swizzle(0b101, 0b11), InvalidArgument);
  EXPECT_THROW(make_swizzle(0b100, 0b11), InvalidArgument);
  EXPECT_EQ(composition(Swizzle(1, 4, 3), Swizzle(1, 5, 3)), Swizzle(2, 4, 3));
  EXPECT_EQ(composition(Swizzle(3, 4, 3), Swizzle(3, 4, 3)), Swizzle());
  EXPECT_THROW(composition(Swizzle(1, 4, 3), Swizzle(1, 4, 2)), InvalidArgument);
  EXPECT_THROW(composition(Swizzle(1, 0, 3), Swizzle(1, 3, 3)), InvalidArgument)
      << "one reads the bits that the other changes";
}

TEST(ComposedAlgebra, AppliesToTheInnerLayout) {
  const ComposedLayout tiled = tile_to_shape(kAtom, {128, 64});
  EXPECT_EQ(to_string(tiled), "Sw<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,8192))");
  EXPECT_EQ(to_string(zipped_divide(kAtom, make_tiler({8, 16}))), "Sw<3,3,3> o 0 o ((8,16),(1,4)):((64,1),(0,16))");
  EXPECT_EQ(to_string(logical_divide(kAtom, Tiler{_, make_layout(16)})), "Sw<3,3,3> o 0 o (8,(16,4)):(64,(1,16))");
  EXPECT_EQ(to_string(coalesce(tiled)), "Sw<3,3,3> o 0 o (128,64):(64,1)");
  EXPECT_EQ(to_string(composition(kAtom, make_tiler({4, 32}))), "Sw<3,3,3> o 0 o (4,32):(64,1)");
  EXPECT_EQ(to_string(blocked_product(kAtom, make_layout({2, 1}))),
            "Sw<3,3,3> o 0 o ((8,2),(64,1)):((64,512),(1,1024))");
  EXPECT_EQ(to_string(group(tiled, 0, 2)), "Sw<3,3,3> o 0 o (((8,16),(64,1))):(((64,512),(1,8192)))");
  EXPECT_EQ(complement(kAtom, 1024), Layout(2, 512));
}

TEST(ComposedAlgebra, SlicesAddToTheOffset) {
  EXPECT_EQ(to_string(slice({2, _}, kAtom)), "Sw<3,3,3> o 128 o (64):(1)");
  EXPECT_EQ(to_string(local_tile(kAtom, make_tiler({8, 16}), {0, 3})), "Sw<3,3,3> o 48 o (8,16):(64,1)");
  const Layout threads = make_layout({8, 4});
  for (std::int64_t t = 0; t < 32; ++t) {
    const ComposedLayout part = local_partition(kAtom, threads, t);
    for (std::int64_t i = 0; i < size(part); ++i) ASSERT_EQ(part(i), kAtom(t % 8, t / 8 + 4 * i));
  }
}

TEST(ComposedAlgebra, RecastsSwizzleOffsetAndLayout) {
  const ComposedLayout bytes = recast(kAtom, 16, 8);
  EXPECT_EQ(to_string(bytes), "Sw<3,4,3> o 0 o (8,128):(128,1)");
  EXPECT_EQ(to_string(recast(bytes, 8, 128)), "Sw<3,0,3> o 0 o (8,8):(8,1)");
  EXPECT_EQ(recast(Swizzle(3, 4, 3), 8, 16), Swizzle(3, 3, 3));
  EXPECT_EQ(recast(Swizzle(3, 4, 3), 8, 4), Swizzle(3, 5, 3));
}

TEST(ComposedAlgebra, VectorsAreCutAtTheSwizzleBase) {
  const Layout plain({8, 64}, {64, 1});
  EXPECT_EQ(max_common_vector(plain, plain), 64 * 8);
  EXPECT_EQ(max_common_vector(kAtom, plain), 8);
  EXPECT_EQ(max_common_vector(plain, kAtom), 8);
  EXPECT_EQ(max_common_vector(kAtom, kAtom), 64 * 8);
  EXPECT_EQ(to_string(max_common_layout(kAtom, plain)), "8:8");
  EXPECT_EQ(max_common_vector(ComposedLayout{kAtom.swizzle, 4, plain}, plain), 4) << "the offset is not aligned";
  EXPECT_EQ(max_alignment(kAtom), 8);
}

TEST(ComposedAlgebra, SwizzlesMoveToTheLeftOfLayoutsThatMapBitsToBits) {
  const Layout a({8, 8}, {8, 1});
  EXPECT_EQ(to_string(composition(a, Swizzle(2, 0, -3))), "Sw<2,0,3> o 0 o (8,8):(8,1)");
  EXPECT_EQ(right_inverse_breaks(kAtom), "");
  EXPECT_EQ(left_inverse_breaks(kAtom), "");
  EXPECT_THROW(composition(kAtom, ComposedLayout{Swizzle(2, 0, -3), 0, a}), InvalidArgument) << "the shifts differ";
  EXPECT_THROW(composition(Layout({6, 8}, {8, 1}), Swizzle(2, 0, 3)), InvalidArgument) << "6 is not a power of two";
  EXPECT_THROW(composition(Layout({8, 8}, {0, 1}), Swizzle(2, 0, -3)), InvalidArgument)
      << "the layout drops the bits that the swizzle reads";
  EXPECT_THROW(right_inverse(ComposedLayout{kAtom.swizzle, 64, kAtom.layout}), InvalidArgument);
  EXPECT_THROW(right_inverse(ComposedLayout{Swizzle(1, 0, 1), 0, make_layout(3)}), InvalidArgument);
}

TEST(Decay, ARowOfASwizzleAtomIsALayout) {
  const auto row = decay(slice({5, _}, kAtom));
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->offset, IntTuple(5 * 64 + 5 * 8));
  EXPECT_EQ(to_string(row->layout), "((8,2,2,2)):((1,-8,16,-32))");
  EXPECT_FALSE(decay(kAtom).has_value()) << "rows are swizzled into columns";
  EXPECT_EQ(decay(slice({_, 0}, kAtom))->layout, Layout(IntTuple{8}, IntTuple{72}))
      << "a column moves diagonally through the chunks";
  EXPECT_FALSE(decay(ComposedLayout{kAtom.swizzle, 60, Layout(8, 1)}).has_value())
      << "the offset carries into the swizzled bits";
}

RC_GTEST_PROP(ComposedProperties, DecaysOnlyToTheSameFunction, ()) {
  const int bits = *rc::gen::inRange(0, 4);
  const int shift = *rc::gen::inRange(bits, 5) * *rc::gen::element(1, -1);
  const Swizzle swizzle(bits, *rc::gen::inRange(0, 4), shift);
  const auto extents = *rc::gen::container<std::vector<std::int64_t>>(3, rc::gen::element<std::int64_t>(1, 2, 4, 8, 3));
  const auto strides = *rc::gen::container<std::vector<std::int64_t>>(
      3, rc::gen::element<std::int64_t>(1, 2, 4, 8, 16, 32, 64, -128, 0));
  const ComposedLayout layout{swizzle, *rc::gen::inRange<std::int64_t>(0, 300),
                              Layout(IntTuple::tuple(extents), IntTuple::tuple(strides))};
  const auto plain = decay(layout);
  RC_CLASSIFY(plain.has_value());
  if (!plain) return;
  RC_ASSERT(compatible(layout.shape(), plain->layout.shape()));
  for (std::int64_t i = 0; i < size(layout); ++i) RC_ASSERT(plain->offset.value() + plain->layout(i) == layout(i));
}

RC_GTEST_PROP(ComposedProperties, LayoutAfterSwizzleIsExactOrRefused, ()) {
  const auto order = *rc::gen::element(IntTuple{0, 1, 2}, IntTuple{2, 0, 1}, IntTuple{1, 2, 0}, IntTuple{2, 1, 0});
  const auto extents = *rc::gen::container<std::vector<std::int64_t>>(3, rc::gen::element<std::int64_t>(1, 2, 4, 8, 3));
  const Layout a = make_ordered_layout(IntTuple::tuple(extents), order);
  const int bits = *rc::gen::inRange(0, 3);
  const Swizzle swizzle(bits, *rc::gen::inRange(0, 3), *rc::gen::inRange(bits, 4) * *rc::gen::element(1, -1));
  try {
    const ComposedLayout r = composition(a, swizzle);
    for (std::int64_t i = 0; i < size(a); ++i) RC_ASSERT(r(i) == a(swizzle(i)));
  } catch (const InvalidArgument&) {
    RC_TAG("refused");
  }
}

RC_GTEST_PROP(ComposedProperties, CompositionOfSwizzlesIsExactOrRefused, ()) {
  const int shift = *rc::gen::inRange(2, 5) * *rc::gen::element(1, -1);
  const Swizzle a(*rc::gen::inRange(0, 3), *rc::gen::inRange(0, 5), shift);
  const Swizzle b(*rc::gen::inRange(0, 3), *rc::gen::inRange(0, 5), shift);
  try {
    const Swizzle r = composition(a, b);
    for (std::int64_t i = 0; i < 4096; ++i) RC_ASSERT(r(i) == a(b(i)));
  } catch (const InvalidArgument&) {
    RC_TAG("refused");
  }
}

}  // namespace
}  // namespace tilewright::layout
