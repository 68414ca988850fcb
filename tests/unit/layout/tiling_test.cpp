// Divides, products, partitions: expected results, and the elements of tiles and threads.
#include <gtest/gtest.h>

#include "postconditions.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::layout {
namespace {

TEST(Tiler, IsALayoutOrUnderscoreOrTuple) {
  EXPECT_EQ(to_string(Tiler(Layout(3, 3))), "3:3");
  EXPECT_EQ(to_string(Tiler{Layout(3, 3), _, {make_layout(2), _}}), "<3:3,_,<2:1,_>>");
  EXPECT_EQ(make_tiler({128, _}), (Tiler{Layout(128, 1), _}));
  EXPECT_EQ(to_string(make_tiler({{2, 4}, 8})), "<<2:1,4:1>,8:1>");
  EXPECT_EQ(to_string(dice({1, _, 1}, make_tiler({32, 64, 4}))), "<32:1,4:1>");
  EXPECT_THROW(dice({1, _}, make_tiler({32, 64, 4})), InvalidArgument);
}

TEST(Divide, Goldens) {
  EXPECT_EQ(to_string(logical_divide(Layout({4, 2, 3}, {2, 1, 8}), Layout(4, 2))), "((2,2),(2,3)):((4,1),(2,8))");
  const Layout a({9, {4, 8}}, {59, {13, 1}});
  const Tiler tiler{Layout(3, 3), Layout({2, 4}, {1, 8})};
  EXPECT_EQ(to_string(logical_divide(a, tiler)), "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))");
  EXPECT_EQ(to_string(zipped_divide(a, tiler)), "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))");
  EXPECT_EQ(to_string(logical_divide(make_layout(2), make_layout(32))), "(32,1):(1,0)");
  EXPECT_EQ(to_string(logical_divide(make_layout(6), make_layout(4))), "(4,2):(1,4)")
      << "the last tile exceeds the layout";
  EXPECT_EQ(to_string(zipped_divide(make_layout({128, 64, 3}), make_tiler({32, 16}))),
            "((32,16),(4,4,3)):((1,128),(32,2048,8192))");
  EXPECT_EQ(to_string(zipped_divide(make_layout({128, 64}), Tiler{_, make_layout(16)})),
            "((1,16),(128,4)):((0,128),(1,2048))");
}

TEST(Divide, TilesAreTheCompositionWithTheTiler) {
  const Layout a({9, {4, 8}}, {59, {13, 1}});
  const Tiler tiler{Layout(3, 3), Layout({2, 4}, {1, 8})};
  EXPECT_EQ(zipped_divide(a, tiler).mode(0), composition(a, tiler));
  EXPECT_EQ(to_string(tiled_divide(a, tiler)), "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))");
  EXPECT_EQ(to_string(flat_divide(a, tiler)), "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))");
}

TEST(Product, Goldens) {
  const Layout a({2, 2}, {4, 1});
  EXPECT_EQ(to_string(logical_product(a, make_layout(6))), "((2,2),(2,3)):((4,1),(2,8))");
  EXPECT_EQ(to_string(logical_product(a, Layout({4, 2}, {2, 1}))), "((2,2),(4,2)):((4,1),(8,2))");
  EXPECT_EQ(to_string(blocked_product(Layout({2, 5}, {5, 1}), make_layout({3, 4}))), "((2,3),(5,4)):((5,10),(1,30))");
  EXPECT_EQ(to_string(raked_product(Layout({2, 5}, {5, 1}), make_layout({3, 4}))), "((3,2),(4,5)):((10,5),(30,1))");
  EXPECT_EQ(to_string(logical_product(make_layout({2, 3}), Tiler{make_layout(4)})), "((2,4),3):((1,2),2)");
}

TEST(Product, TileToShape) {
  const Layout block({8, 64}, {64, 1});
  EXPECT_EQ(to_string(tile_to_shape(block, {128, 64})), "((8,16),(64,1)):((64,512),(1,8192))");
  EXPECT_EQ(to_string(tile_to_shape(block, {16, 128, 3})), "((8,2),(64,2),(1,3)):((64,512),(1,1024),(0,2048))");
  EXPECT_EQ(to_string(tile_to_shape(block, {16, 128}, {1, 0})), "((8,2),(64,2)):((64,1024),(1,512))");
  EXPECT_THROW(tile_to_shape(block, {12, 64}), InvalidArgument);
  EXPECT_THROW(tile_to_shape(block, 512), InvalidArgument);
}

TEST(Divide, RefusesATileWithGaps) {
  EXPECT_NE(refusal_of([] {
              return logical_divide(make_layout(20), Layout({3, 2}, {1, 5}));
            }).find("gaps"),
            std::string::npos);
  EXPECT_THROW(zipped_divide(make_layout({4, 8}), make_tiler({2, 2, 2})), InvalidArgument);
}

TEST(Divide, NestedTilersTileModesOfModes) {
  const Layout a = make_layout({{4, 8}, 6});
  EXPECT_EQ(to_string(zipped_divide(a, make_tiler({{2, 4}, 3}))), "(((2,4),3),((2,2),2)):(((1,4),32),((2,16),96))");
}

TEST(Product, ZippedTiledFlat) {
  const Layout a = make_layout({2, 5});
  const Tiler copies{make_layout(3), make_layout(4)};
  EXPECT_EQ(to_string(zipped_product(a, copies)), "((2,5),(3,(2,2))):((1,2),(2,(1,10)))");
  EXPECT_EQ(to_string(tiled_product(a, copies)), "((2,5),3,(2,2)):((1,2),2,(1,10))");
  EXPECT_EQ(to_string(flat_product(a, copies)), "(2,5,3,(2,2)):(1,2,2,(1,10))");
  EXPECT_EQ(to_string(blocked_product(make_layout(2), make_layout(3))), "(2,3):(1,2)");
}

TEST(Partition, TilesHaveTheirOffsetsInTheData) {
  const Layout data = make_row_major({128, 256});
  const LayoutAndOffset tile = local_tile(data, make_tiler({32, 64}), {2, 3});
  EXPECT_EQ(to_string(tile.layout), "(32,64):(256,1)");
  for (std::int64_t m = 0; m < 32; ++m) {
    for (std::int64_t n = 0; n < 64; ++n)
      ASSERT_EQ(tile.offset.value() + tile.layout(m, n), data(2 * 32 + m, 3 * 64 + n));
  }
  EXPECT_EQ(to_string(local_tile(data, make_tiler({32, 64}), {2, _}).layout), "(32,64,4):(256,1,64)");
  EXPECT_EQ(to_string(local_tile(data, make_tiler({32, 64}), {2}).layout), "(32,64,4):(256,1,64)");
  EXPECT_EQ(local_tile(data, make_tiler({32, 64}), 2 + 4 * 3), tile) << "the index of a tile";
}

TEST(Partition, ProjectionsOfOneTiler) {
  const IntTuple coord{1, 2, _};
  const Tiler mnk = make_tiler({32, 64, 4});
  const LayoutAndOffset a = local_tile(make_row_major({128, 16}), mnk, coord, {1, _, 1});
  EXPECT_EQ(to_string(a.layout), "(32,4,4):(16,1,4)");
  EXPECT_EQ(a.offset, IntTuple(32 * 16));
  const LayoutAndOffset c = local_tile(make_row_major({128, 256}), mnk, coord, {1, 1, _});
  EXPECT_EQ(to_string(c.layout), "(32,64):(256,1)");
  EXPECT_EQ(c.offset, IntTuple(32 * 256 + 2 * 64));
}

TEST(Partition, ThreadsTakeElementsRoundRobin) {
  const Layout data = make_layout({16, 64});
  const Layout threads({2, 16}, {16, 1});
  for (std::int64_t t = 0; t < 32; ++t) {
    const LayoutAndOffset part = local_partition(data, threads, t);
    ASSERT_EQ(part.layout.shape(), (IntTuple{8, 4}));
    for (std::int64_t i = 0; i < 8; ++i) {
      for (std::int64_t j = 0; j < 4; ++j)
        ASSERT_EQ(part.offset.value() + part.layout(i, j), data(t / 16 + 2 * i, t % 16 + 16 * j)) << t;
    }
  }
  EXPECT_THROW(local_partition(data, threads, 32), InvalidArgument);
  const Layout mnk({2, 16, 1}, {16, 1, 0});
  EXPECT_EQ(to_string(local_partition(make_layout({16, 8}), mnk, 17, {1, _, 1}).layout), "(8,8):(2,16)");
}

TEST(Partition, OfCoordinates) {
  const LayoutAndOffset tile = local_tile(make_identity_layout({128, 256}), make_tiler({32, 64}), {2, 3});
  EXPECT_EQ(to_string(tile.layout), "(32,64):(1@0,1@1)");
  EXPECT_EQ(tile.offset, (IntTuple{64, 192}));
  EXPECT_EQ(tile.offset + coordinate(tile.layout, IntTuple{5, 7}), (IntTuple{69, 199}));
}

}  // namespace
}  // namespace tilewright::layout
