// The raster order of kernels and their persistent tile scheduler, against the order of CUTLASS's threadblock swizzles.
#include <gtest/gtest.h>

#include "cuda_kernel.hpp"
#include "hopper_kernel.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::emulator {
namespace {

struct Tile {
  int m, n;
  bool operator==(const Tile&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Tile& tile) { return out << "(" << tile.m << "," << tile.n << ")"; }

/// GemmIdentityThreadblockSwizzle<width>: the grid is (tiles_m << log, ceil(tiles_n >> log)), and CTA (x, y) computes
/// tile (x >> log, (y << log) + x % (1 << log)). CTAs outside D return at once.
std::vector<Tile> identity_order(int width, int tiles_m, int tiles_n) {
  const int log = width >= 8 && tiles_n >= 6 ? 3 : width >= 4 && tiles_n >= 3 ? 2 : width >= 2 && tiles_n >= 2 ? 1 : 0;
  const int columns = 1 << log;
  std::vector<Tile> order;
  for (int y = 0; y < (tiles_n + columns - 1) / columns; ++y) {
    for (int x = 0; x < tiles_m * columns; ++x) {
      const Tile tile{x / columns, y * columns + x % columns};
      if (tile.n < tiles_n) order.push_back(tile);
    }
  }
  return order;
}

/// GemmHorizontalThreadblockSwizzle: the grid is (tiles_n, tiles_m), and CTA (x, y) computes tile (y, x).
std::vector<Tile> horizontal_order(int tiles_m, int tiles_n) {
  std::vector<Tile> order;
  for (int y = 0; y < tiles_m; ++y) {
    for (int x = 0; x < tiles_n; ++x) order.push_back({y, x});
  }
  return order;
}

/// The order of Raster<width, groups_rows>.
std::vector<Tile> order_of(int width, bool groups_rows, int tiles_m, int tiles_n) {
  if (!groups_rows) return identity_order(width, tiles_m, tiles_n);
  if (width == 1) return horizontal_order(tiles_m, tiles_n);
  std::vector<Tile> order = identity_order(width, tiles_n, tiles_m);
  for (Tile& tile : order) std::swap(tile.m, tile.n);
  return order;
}

TEST(Raster, IsTheOrderOfCutlass) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC";
  constexpr int kMost = 11;
  const auto device = test_device();
  for (const bool groups_rows : {false, true}) {
    for (const int width : {1, 2, 4, 8}) {
      const std::string ptx = ptx_of("k", fmt::format(R"(
#include "tilewright/scheduler/raster.cuh"
extern "C" __global__ void k(int* out, const tilewright::TileGrid* grid) {{
  const tilewright::TileCoordinate tile = tilewright::Raster<{}, {}>::tile(blockIdx.x, *grid);
  out[2 * blockIdx.x] = tile.m;
  out[2 * blockIdx.x + 1] = tile.n;
}})",
                                                      width, groups_rows));
      for (int tiles_m = 1; tiles_m <= kMost; ++tiles_m) {
        for (int tiles_n = 1; tiles_n <= kMost; ++tiles_n) {
          const auto tiles = static_cast<std::uint32_t>(tiles_m * tiles_n);
          const auto out = upload(device, std::vector<Tile>(tiles));
          const auto grid = upload(device, std::vector{plan::tile_grid({width, groups_rows}, tiles_m, tiles_n)});
          launch(*device, ptx, "k", {out.address(), grid.address()}, {1, 1, 1}, {tiles, 1, 1});
          EXPECT_EQ(download<Tile>(*device, out), order_of(width, groups_rows, tiles_m, tiles_n))
              << width << (groups_rows ? " rows of " : " columns of ") << tiles_m << "x" << tiles_n;
        }
      }
    }
  }
}

/// The groups of a persistent grid, which are split_k clusters each, take cluster tiles round-robin in the raster
/// order, one matrix after another.
struct Persistent {
  int width;
  bool groups_rows;
  int cluster_m, cluster_n, split_k;
  int groups;
};

class PersistentOrder : public testing::TestWithParam<Persistent> {};

TEST_P(PersistentOrder, IsTheRasterOrderOfClusterTiles) {
  if (compiler() == nullptr) GTEST_SKIP() << "no NVRTC";
  constexpr int kTileM = 64, kTileN = 128, kTilesM = 3, kTilesN = 7, kBatches = 2, kMost = 64;
  const auto [width, groups_rows, cluster_m, cluster_n, split_k, groups] = GetParam();
  const std::string ptx = ptx_of("k",
                                 fmt::format(R"(
#include "tilewright/scheduler/persistent.cuh"
struct Plan {{
  static constexpr int kTileM = {}, kTileN = {}, kClusterM = {}, kClusterN = {}, kSplitK = {};
  using Raster = tilewright::Raster<{}, {}>;
}};
extern "C" __global__ void k(int* out, const tilewright::TileGrid* grid, long long batches) {{
  tilewright::PersistentTiles<Plan> tiles(*grid, batches);
  tilewright::TileOrigin tile;
  for (int i = 0; tiles.next(tile); ++i) {{
    int* const at = out + (blockIdx.x * {} + i) * 3;
    at[0] = tile.batch;
    at[1] = tile.m;
    at[2] = tile.n;
  }}
}})",
                                             kTileM, kTileN, cluster_m, cluster_n, split_k, width, groups_rows, kMost),
                                 kSm90a);
  const auto device = test_device();
  const auto ctas_of_cluster = static_cast<std::uint32_t>(cluster_m * cluster_n);
  const std::uint32_t ctas = ctas_of_cluster * static_cast<std::uint32_t>(split_k * groups);
  const auto out = upload(device, std::vector<int>(std::size_t{ctas} * kMost * 3, -1));
  const auto grid = upload(device, std::vector{plan::tile_grid({width, groups_rows}, kTilesM, kTilesN, groups)});
  launch_hopper(*device, ptx, pack_maps({}, {out.address(), grid.address(), kBatches}),
                {.block = {1, 1, 1}, .grid = {ctas, 1, 1}, .cluster = {ctas_of_cluster, 1, 1}});

  const std::vector<Tile> order = order_of(width, groups_rows, kTilesM, kTilesN);
  std::vector<int> expected(std::size_t{ctas} * kMost * 3, -1);
  for (int cta = 0; cta < static_cast<int>(ctas); ++cta) {
    const int rank = cta % (cluster_m * cluster_n), group = cta / (cluster_m * cluster_n * split_k);
    int* to = expected.data() + std::ptrdiff_t{cta} * kMost * 3;
    for (int index = group; index < kTilesM * kTilesN * kBatches; index += groups) {
      const Tile& tile = order[static_cast<std::size_t>(index % (kTilesM * kTilesN))];
      *to++ = index / (kTilesM * kTilesN);
      *to++ = (tile.m * cluster_m + rank % cluster_m) * kTileM;
      *to++ = (tile.n * cluster_n + rank / cluster_m) * kTileN;
    }
  }
  EXPECT_EQ(download<int>(*device, out), expected);
}

INSTANTIATE_TEST_SUITE_P(Grids, PersistentOrder,
                         testing::Values(Persistent{1, false, 1, 1, 1, 5}, Persistent{1, true, 1, 1, 1, 5},
                                         Persistent{8, false, 2, 1, 1, 4}, Persistent{8, true, 1, 2, 1, 3},
                                         Persistent{2, false, 1, 1, 3, 2}, Persistent{4, true, 2, 1, 2, 1}));

}  // namespace
}  // namespace tilewright::emulator
