// XOR swizzles: values, involution, bijection, recast, printing.
#include "tilewright/layout/swizzle.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>
#include <set>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::layout {
namespace {

TEST(Swizzle, Prints) {
  EXPECT_EQ(to_string(Swizzle(3, 4, 3)), "Sw<3,4,3>");
  EXPECT_EQ(to_string(Swizzle(2, 4, -3)), "Sw<2,4,-3>");
  EXPECT_EQ(to_string(ComposedLayout{Swizzle(3, 4, 3), 0, Layout({8, 64}, {64, 1})}), "Sw<3,4,3> o 0 o (8,64):(64,1)");
}

TEST(Swizzle, PermutesChunksInRowsOf128Bytes) {
  const Swizzle swizzle(3, 4, 3);
  const std::int64_t starts[] = {0x0, 0x90, 0x120, 0x1b0, 0x240, 0x2d0, 0x360, 0x3f0, 0x400};
  for (std::int64_t row = 0; row < 9; ++row) EXPECT_EQ(swizzle(row * 128), starts[row]) << row;
}

TEST(Swizzle, NarrowerSwizzlesChangeFewerBits) {
  EXPECT_EQ(Swizzle(2, 4, 3)(0x180), 0x180 ^ 0x30);
  EXPECT_EQ(Swizzle(1, 4, 3)(0x180), 0x180 ^ 0x10);
  EXPECT_EQ(Swizzle(2, 5, 2)(0x180), 0x180 ^ 0x60);
  EXPECT_EQ(Swizzle(1, 0, -2)(0x1), 0x5);
  EXPECT_EQ(Swizzle()(0x1234), 0x1234);
}

TEST(Swizzle, IsRecast) {
  EXPECT_EQ(upcast(Swizzle(3, 4, 3), 2), Swizzle(3, 3, 3));
  EXPECT_EQ(upcast(Swizzle(3, 4, 3), 8), Swizzle(3, 1, 3));
  EXPECT_EQ(downcast(Swizzle(3, 3, 3), 2), Swizzle(3, 4, 3));
  EXPECT_THROW(upcast(Swizzle(3, 4, 3), 32), InvalidArgument);
  for (const std::int64_t n : {0, -1, 3}) {
    EXPECT_THROW(upcast(Swizzle(3, 4, 3), n), InvalidArgument);
    EXPECT_THROW(downcast(Swizzle(), n), InvalidArgument);
  }
  const ComposedLayout f16{Swizzle(3, 3, 3), 0, Layout({8, 64}, {64, 1})};
  EXPECT_EQ(f16(1, 0), 72);
  EXPECT_EQ(f16(3, 17), 201);
  EXPECT_EQ(downcast(f16, 2).swizzle, Swizzle(3, 4, 3));
  EXPECT_THROW(upcast(ComposedLayout{Swizzle(3, 4, 3), 1, make_layout(8)}, 2), InvalidArgument);
}

TEST(Swizzle, RefusesOverlappingBits) {
  EXPECT_THROW(Swizzle(3, 4, 2), InvalidArgument);
  EXPECT_THROW(Swizzle(-1, 4, 3), InvalidArgument);
  EXPECT_THROW(Swizzle(1, -1, 3), InvalidArgument);
  EXPECT_THROW(Swizzle(30, 10, 30), InvalidArgument);
  constexpr int most = std::numeric_limits<int>::max();
  EXPECT_THROW(Swizzle(0, most, most), InvalidArgument);
  EXPECT_THROW(Swizzle(0, 0, std::numeric_limits<int>::min()), InvalidArgument);
}

TEST(ComposedLayout, SwizzlesAfterTheOffset) {
  const ComposedLayout layout{Swizzle(3, 4, 3), 128, Layout({8, 128}, {128, 1})};
  EXPECT_EQ(layout(0, 5), 0x90 + 5);
  EXPECT_EQ(layout(IntTuple{1, 0}), 0x120);
  EXPECT_EQ(size(layout), 1024);
}

RC_GTEST_PROP(SwizzleProperties, IsAnInvolutionAndABijectionOfItsBlock, ()) {
  const int bits = *rc::gen::inRange(0, 4);
  const int shift = *rc::gen::inRange(bits, 5) * *rc::gen::element(1, -1);
  const Swizzle swizzle(bits, *rc::gen::inRange(0, 4), shift);
  std::set<std::int64_t> image;
  for (std::int64_t i = 0; i < size(swizzle); ++i) {
    RC_ASSERT(swizzle(swizzle(i)) == i);
    RC_ASSERT(swizzle(i) < size(swizzle));
    image.insert(swizzle(i));
  }
  RC_ASSERT(image.size() == static_cast<std::size_t>(size(swizzle)));
}

}  // namespace
}  // namespace tilewright::layout
