// The checks that the plans of all GEMM families share, and their launches: the grid of tiles and the parameter struct.
#include "tilewright/plan/gemm_tile.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/grouped_gemm.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {
namespace {

struct BadTile {
  std::string name;
  void (*spoil)(GemmTiling&);
  std::string reason;
};
std::ostream& operator<<(std::ostream& out, const BadTile& bad) { return out << bad.name; }

class TileRefusal : public testing::TestWithParam<BadTile> {};

TEST_P(TileRefusal, StatesTheNumber) {
  const op::GemmSignature description = describe_f32();
  SimtGemmDesign design = simt_design();
  ASSERT_TRUE(plan_gemm_tile(description, design));
  GetParam().spoil(design);
  const Result<GemmTile> plan = plan_gemm_tile(description, design);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.reason(), GetParam().reason);
}

constexpr int kHuge = std::numeric_limits<int>::max();

BadTile bad_design(std::string name, void (*spoil)(GemmTiling&), std::string reason) {
  return {std::move(name), spoil, std::move(reason)};
}

const auto tile_of = [](const auto& tested) { return tested.param.name; };

INSTANTIATE_TEST_SUITE_P(
    Designs, TileRefusal,
    testing::Values(
        bad_design(
            "NoRows", [](GemmTiling& d) { d.tile.m = 0; }, "tile m must be from 1 to 1024, got 0"),
        bad_design(
            "NegativeColumns", [](GemmTiling& d) { d.tile.n = -128; }, "tile n must be from 1 to 1024, got -128"),
        bad_design(
            "HugeK", [](GemmTiling& d) { d.tile.k = kHuge; }, "tile k must be from 1 to 1024, got 2147483647"),
        bad_design(
            "ThreeWarps", [](GemmTiling& d) { d.warps_m = 3; }, "tile m 128 is not divisible by warp count m 3"),
        bad_design(
            "NoWarps", [](GemmTiling& d) { d.warps_n = 0; }, "warp count n must be at least 1, got 0"),
        bad_design(
            "OneStage", [](GemmTiling& d) { d.stages = 1; },
            "stages must be at least 2, so that one is loaded while another is read, got 1"),
        bad_design(
            "HugeStages", [](GemmTiling& d) { d.stages = kHuge; }, "stages must be at most 64, got 2147483647"),
        bad_design(
            "TooManyThreads", [](GemmTiling& d) { d.warps_m = d.warps_n = 8; },
            "64 warps, more than the 32 of a CTA of 1024 threads"),
        bad_design(
            "HugeWarps", [](GemmTiling& d) { d.warps_m = d.warps_n = 1 << 30; },
            "1152921504606846976 warps, more than the 32 of a CTA of 1024 threads"),
        bad_design(
            "RowsNotDivisible", [](GemmTiling& d) { d.tile.m = 127; }, "tile m 127 is not divisible by warp count m 2"),
        bad_design(
            "ColumnsNotDivisible", [](GemmTiling& d) { d.tile.n = 126; },
            "tile n 126 is not divisible by warp count n 4"),
        bad_design(
            "RasterOfThree", [](GemmTiling& d) { d.raster.width = 3; }, "raster width must be 1, 2, 4 or 8, got 3"),
        bad_design(
            "RasterOfSixteen", [](GemmTiling& d) { d.raster.width = 16; }, "raster width must be 1, 2, 4 or 8, got 16"),
        bad_design(
            "NoRaster", [](GemmTiling& d) { d.raster.width = 0; }, "raster width must be 1, 2, 4 or 8, got 0"),
        bad_design(
            "OldTarget", [](GemmTiling& d) { d.target.sm = 75; }, "cp.async needs sm_80, the target is sm_75")),
    tile_of);

TEST(GemmTile, ColumnMajorOutputIsComputedTransposed) {
  const op::GemmSignature description = describe_f16({kRow, kColumn, kRow, kColumn});
  const Result<GemmTile> plan = plan_gemm_tile(description, sm80_design({16, 8, 16}, {{128, 64, 32}, 3, {4, 1}}));
  ASSERT_TRUE(plan) << plan.reason();
  EXPECT_TRUE(plan->is_transposed);
  EXPECT_EQ(plan->tile, (TileShape{64, 128, 32}));
  EXPECT_EQ(plan->warps_m, 1);
  EXPECT_EQ(plan->warps_n, 4);
  EXPECT_EQ(plan->warp_tile_m(), 64);
  EXPECT_EQ(plan->warp_tile_n(), 32);
  EXPECT_EQ(plan->threads(), 128);
  EXPECT_EQ(plan->operands, op::transposed(description));
  EXPECT_EQ(plan->operands.d.layout, kRow);
  EXPECT_EQ(plan->operands.c.layout, kColumn);
}

TEST(GemmTile, InterleavedOutputIsTransposedIfItsColumnsAreContiguous) {
  const TypeCase bytes{DType::s8, DType::s8, DType::s8, DType::s32};
  const op::GemmSignature by_columns = describe(bytes, kInterleavedLayouts);
  const Sm80GemmDesign design = sm80_design({16, 8, 32}, {{128, 64, 64}, 3, {4, 1}});
  const Result<GemmTile> plain = plan_gemm_tile(by_columns, design);
  ASSERT_TRUE(plain) << plain.reason();
  EXPECT_FALSE(plain->is_transposed);
  const Result<GemmTile> transposed =
      plan_gemm_tile(describe(bytes, {kColumnInterleaved, kRowInterleaved, kRow, kRowInterleaved}), design);
  ASSERT_TRUE(transposed) << transposed.reason();
  EXPECT_TRUE(transposed->is_transposed);
  EXPECT_EQ(transposed->operands.a.layout, kColumnInterleaved);
  EXPECT_EQ(transposed->operands.b.layout, kRowInterleaved);
  EXPECT_EQ(transposed->operands.c.layout, kColumn);
  EXPECT_EQ(transposed->operands.d.layout, kColumnInterleaved);
}

TEST(GemmTile, RasterIsThatOfTheCallersProblem) {
  Sm80GemmDesign design = sm80_design({16, 8, 16}, {{128, 64, 32}, 3, {4, 1}});
  for (const bool along_n : {false, true}) {
    design.raster = {4, along_n};
    EXPECT_EQ(plan_gemm_tile(describe_f16(), design)->raster, (Raster{4, along_n}));
    EXPECT_EQ(plan_gemm_tile(describe_f16({kRow, kColumn, kRow, kColumn}), design)->raster, (Raster{4, !along_n}));
    EXPECT_EQ(plan_gemm_tile(describe_f16(), design, true)->raster, (Raster{4, !along_n}));
  }
}

TEST(GemmTile, RowMajorOutputStaysAsItIs) {
  const op::GemmSignature description = describe_f16();
  Sm80GemmDesign design = sm80_design({16, 8, 16}, {{128, 64, 32}, 3, {4, 1}});
  for (const int width : {1, 2, 4, 8}) {
    design.raster.width = width;
    const Result<GemmTile> plan = plan_gemm_tile(description, design);
    ASSERT_TRUE(plan) << plan.reason();
    EXPECT_FALSE(plan->is_transposed);
    EXPECT_EQ(plan->tile, (TileShape{128, 64, 32}));
    EXPECT_EQ(plan->stages, 3);
    EXPECT_EQ(plan->raster.width, width);
    EXPECT_EQ(plan->operands, description);
  }
}

TEST(SharedMemory, LimitIsTheTargets) {
  EXPECT_TRUE(check_smem(166912, kSm80));
  EXPECT_EQ(check_smem(166913, kSm80).reason(),
            "needs 166913 bytes of shared memory, more than the 166912 of a CTA on sm_80");
  EXPECT_TRUE(check_smem(232448, kSm90));
  EXPECT_FALSE(check_smem(232449, kSm90));
  EXPECT_FALSE(check_smem(101377, {86}));
}

// The kernel's parameter struct as device/tilewright/gemm/parameters.cuh declares it.
template <class Scalars>
struct Parameters {
  std::uint64_t a, b, c, d;
  std::int64_t lda, ldb, ldc, ldd;
  std::int64_t batch_stride_a, batch_stride_b, batch_stride_c, batch_stride_d;
  std::int32_t m, n, k;
  TileGrid tiles;
  std::uint32_t batch;
  std::uint64_t workspace;
  std::int64_t reduction_parts;
  Scalars epilogue;
};
template <class T>
struct AlphaBeta {
  T alpha, beta;
};
struct NoScalars {};

template <class Scalars>
Parameters<Scalars> parameters_of(const Launch& launch) {
  Parameters<Scalars> parameters{};
  EXPECT_EQ(launch.parameters().size(), sizeof parameters);
  std::memcpy(static_cast<void*>(&parameters), launch.parameters().data(),
              std::min(sizeof parameters, launch.parameters().size()));
  return parameters;
}

// A problem with m = 100, n = 70, k = 33 and padded leading dimensions.
op::Gemm problem(DType type, DType d_type, op::MatrixLayout d_layout = kRow) {
  op::Gemm gemm;
  gemm.a = op::matrix(std::uint64_t{0xa0000}, type, 100, 33, kRow, 40);
  gemm.b = op::matrix(std::uint64_t{0xb0000}, type, 33, 70, kColumn, 48);
  gemm.c = op::matrix(std::uint64_t{0xc0000}, d_type, 100, 70, kRow, 72);
  gemm.d = op::matrix(std::uint64_t{0xd0000}, d_type, 100, 70, d_layout, 120);
  gemm.accumulator = op::default_accumulator(type);
  gemm.epilogue = op::linear_combination(op::default_compute(gemm.accumulator, d_type));
  gemm.alpha = 2.0;
  gemm.beta = -3.0;
  return gemm;
}

GemmTile tile_for(const op::Gemm& gemm) {
  const op::GemmSignature description = op::describe(gemm);
  const Result<GemmTile> tile = plan_gemm_tile(description, simt_design({{64, 32, 8}, 3, {2, 1}}));
  EXPECT_TRUE(tile);
  return *tile;
}

TEST(Launching, GridBlockAndParametersOfF32) {
  const op::Gemm gemm = problem(DType::f32, DType::f32);
  const Launch launch = launch_gemm(tile_for(gemm), {}, 12345, op::view(gemm));
  EXPECT_EQ(launch.grid, (std::array<std::uint32_t, 3>{2 * 3, 1, 1}));
  EXPECT_EQ(launch.block, (std::array<std::uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(launch.dynamic_smem_bytes, 12345U);
  const auto p = parameters_of<AlphaBeta<float>>(launch);
  EXPECT_EQ(p.a, 0xa0000U);
  EXPECT_EQ(p.b, 0xb0000U);
  EXPECT_EQ(p.c, 0xc0000U);
  EXPECT_EQ(p.d, 0xd0000U);
  EXPECT_EQ(p.lda, 40);
  EXPECT_EQ(p.ldb, 48);
  EXPECT_EQ(p.ldc, 72);
  EXPECT_EQ(p.ldd, 120);
  EXPECT_EQ(p.m, 100);
  EXPECT_EQ(p.n, 70);
  EXPECT_EQ(p.k, 33);
  EXPECT_EQ(p.tiles.tiles_m, 2);
  EXPECT_EQ(p.tiles.tiles_n, 3);
  EXPECT_EQ(p.batch_stride_a, 0);
  EXPECT_EQ(p.batch_stride_d, 0);
  EXPECT_EQ(p.batch, 1U);
  EXPECT_EQ(p.epilogue.alpha, 2.0F);
  EXPECT_EQ(p.epilogue.beta, -3.0F);
}

TEST(Launching, ABatchIsTheGridsYAndZ) {
  op::Gemm gemm = problem(DType::f32, DType::f32, kColumn);
  gemm.a = op::batched(gemm.a, 7, std::int64_t{1} << 33);
  gemm.b = op::batched(gemm.b, 7, 0);
  gemm.c = op::batched(gemm.c, 7);
  gemm.d = op::batched(gemm.d, 7, 9000);
  const Launch launch = launch_gemm(tile_for(gemm), {}, 0, op::view(gemm));
  EXPECT_EQ(launch.grid, (std::array<std::uint32_t, 3>{3 * 2, 1, 7}));
  const auto p = parameters_of<AlphaBeta<float>>(launch);
  EXPECT_EQ(p.batch_stride_a, 0) << "the transposed problem's A is B";
  EXPECT_EQ(p.batch_stride_b, std::int64_t{1} << 33);
  EXPECT_EQ(p.batch_stride_c, 72 * 100);
  EXPECT_EQ(p.batch_stride_d, 9000);
  EXPECT_EQ(p.batch, 7U);
  gemm.beta = 0.0;
  EXPECT_EQ(parameters_of<AlphaBeta<float>>(launch_gemm(tile_for(gemm), {}, 0, op::view(gemm))).batch_stride_c, 0);
}

// The workspace has the counters, two sets of partial sums for each group, and the parts of reductions. A group is the
// CTAs of one tile; there are as many as are resident at once, or as there are tiles.
/// Seven problems of f32, of 2x3 tiles each.
op::Gemm seven_problems() {
  op::Gemm gemm = problem(DType::f32, DType::f32);
  for (op::Tensor* const tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) *tensor = op::batched(*tensor, 7);
  return gemm;
}

TEST(Launching, GroupsOfASplitKKernelAreResident) {
  const op::Gemm gemm = seven_problems();
  GemmTile tile = tile_for(gemm);
  tile.split_k = 4;
  constexpr std::size_t kPartialBytes = 64 * 32 * 4;
  for (const auto& [residence, groups] : {std::pair{Residence{2, 10}, 5U}, {Residence{4, 132}, 2U * 3 * 7}}) {
    ASSERT_TRUE(check_launch(tile, residence, op::view(gemm)));
    const Launch launch = launch_gemm(tile, residence, 0, op::view(gemm));
    EXPECT_EQ(launch.grid, (std::array<std::uint32_t, 3>{groups * 4, 1, 1}));
    EXPECT_TRUE(launch.cooperative);
    EXPECT_EQ(launch.ctas_per_sm, residence.ctas_per_sm);
    EXPECT_EQ(launch.workspace_bytes(), kWorkspaceCounterBytes + groups * 2 * 4 * kPartialBytes);
    EXPECT_EQ(static_cast<std::size_t>(parameters_of<AlphaBeta<float>>(launch).reduction_parts),
              launch.workspace_bytes());
  }
}

// The CTAs need not be resident together, and the workspace has one sum for each tile.
TEST(Launching, PartsInTurnNeedNoCooperativeLaunch) {
  op::Gemm gemm = seven_problems();
  GemmTile tile = tile_for(gemm);
  tile.split_k = 4;
  tile.splits_in_turn = true;
  constexpr std::uint32_t kTiles = 2 * 3 * 7;
  for (const auto& [residence, ctas] : {std::pair{Residence{2, 10}, 20U}, {Residence{4, 132}, kTiles * 4}}) {
    ASSERT_TRUE(check_launch(tile, residence, op::view(gemm)));
    const Launch launch = launch_gemm(tile, residence, 0, op::view(gemm));
    EXPECT_EQ(launch.grid, (std::array<std::uint32_t, 3>{ctas, 1, 1}));
    EXPECT_FALSE(launch.cooperative);
    EXPECT_EQ(launch.workspace_bytes(), kWorkspaceCounterBytes + std::size_t{kTiles} * 64 * 32 * 4);
  }
  gemm.d = op::batched(gemm.d, 20000);
  EXPECT_EQ(check_launch(tile, {4, 132}, op::view(gemm)).reason(),
            "split-K in turn must have at most 63479 tiles and 1073741823 parts, got 120000 tiles");
}

TEST(Launching, GroupsOfASplitKKernelHaveABarrierEach) {
  op::Gemm gemm = problem(DType::f32, DType::f32);
  gemm.d = op::batched(gemm.d, 700);
  GemmTile tile = tile_for(gemm);
  tile.split_k = 2;
  const Residence residence{16, 132};
  EXPECT_EQ(residence.groups(3), 16 * 132 / 3);
  EXPECT_EQ(residence.groups(2), kGroupBarriers);
  EXPECT_EQ(launch_gemm(tile, residence, 0, op::view(gemm)).grid[0], 2U * kGroupBarriers);
}

TEST(Launching, SplitKNeedsResidentCtasAndWholeVectors) {
  const op::Gemm gemm = problem(DType::f32, DType::f32);
  GemmTile tile = tile_for(gemm);
  const auto refusal = [&](int split_k, int columns) {
    tile.split_k = split_k;
    tile.tile.n = columns;
    return check_split_k(tile, {2, 10}).reason();
  };
  EXPECT_EQ(refusal(21, 32),
            "split_k must be from 1 to 20, the number of CTAs of this kernel that are resident at "
            "once, got 21");
  EXPECT_EQ(refusal(4, 30), "with split-K a row of a tile must be a multiple of 16 bytes of accumulators, got 120");
  tile.tile.n = 32;
  EXPECT_TRUE(check_split_k(tile, {2, 10}));
  EXPECT_EQ(tile.split_k_rows(), 17) << "a quarter of the tile's 64 rows, which may begin anywhere in a row";
  tile.splits_in_turn = true;
  EXPECT_TRUE(check_split_k(tile, {2, 10}));
  tile.tile = {1, 128, 8};
  EXPECT_EQ(check_split_k(tile, {2, 10}).reason(),
            fmt::format("a thread adds parts in vectors of 16 bytes, but has {} bytes of accumulators",
                        128 * 4 / tile.threads()));
  tile.split_k = 1;
  EXPECT_EQ(check_split_k(tile, {2, 10}).reason(), "the parts of K are added in turn, but split_k is 1");
  tile = tile_for(gemm);
  tile.split_k = 7;
  tile.tile.n = 32;
  EXPECT_EQ(tile.split_k_rows(), 11) << "74 vectors of rows of 8, which may begin anywhere in a row";
}

// gridDim.z is at most 65535. The few CTAs past the last matrix return at once.
TEST(Launching, BatchesOfAnySizeFitTheGrid) {
  const op::Gemm one = problem(DType::f32, DType::f32);
  const auto grid = [&](std::int64_t batch) {
    op::Gemm gemm = one;
    gemm.d = op::batched(one.d, batch);
    const std::array<std::uint32_t, 3> found = launch_gemm(tile_for(one), {}, 0, op::view(gemm)).grid;
    EXPECT_EQ(found[0], 6U);
    return std::array{found[1], found[2]};
  };
  EXPECT_EQ(grid(65535), (std::array{1U, 65535U}));
  EXPECT_EQ(grid(65536), (std::array{2U, 32768U}));
  EXPECT_EQ(grid(100000), (std::array{2U, 50000U}));
  EXPECT_EQ(grid(2147483647), (std::array{32769U, 65535U}));
  EXPECT_EQ(grid(0), (std::array{1U, 1U}));
}

TEST(Launching, TransposedProblemExchangesTheOperands) {
  const op::Gemm gemm = problem(DType::f32, DType::f32, kColumn);
  const GemmTile tile = tile_for(gemm);
  ASSERT_EQ(tile.tile, (TileShape{32, 64, 8}));
  const auto p = parameters_of<AlphaBeta<float>>(launch_gemm(tile, {}, 0, op::view(gemm)));
  EXPECT_EQ(p.a, 0xb0000U);
  EXPECT_EQ(p.b, 0xa0000U);
  EXPECT_EQ(p.lda, 48);
  EXPECT_EQ(p.ldb, 40);
  EXPECT_EQ(p.ldd, 120);
  EXPECT_EQ(p.m, 70);
  EXPECT_EQ(p.n, 100);
  EXPECT_EQ(p.tiles.tiles_m, 3);
  EXPECT_EQ(p.tiles.tiles_n, 2);
}

TEST(Launching, ScalarsHaveTheEpiloguesType) {
  const op::Gemm doubles = problem(DType::f64, DType::f64);
  const auto f64 = parameters_of<AlphaBeta<double>>(launch_gemm(tile_for(doubles), {}, 0, op::view(doubles)));
  EXPECT_EQ(f64.tiles.tiles_n, 3);
  EXPECT_EQ(f64.epilogue.alpha, 2.0);
  EXPECT_EQ(f64.epilogue.beta, -3.0);
  const op::Gemm integers = problem(DType::s8, DType::s32);
  const auto s32 = parameters_of<AlphaBeta<std::int32_t>>(launch_gemm(tile_for(integers), {}, 0, op::view(integers)));
  EXPECT_EQ(s32.epilogue.alpha, 2);
  EXPECT_EQ(s32.epilogue.beta, -3);
}

TEST(Launching, ScalarsComeInTheOrderOfTheGraph) {
  struct Leaky {
    float alpha, beta, leaky_alpha;
  };
  op::Gemm gemm = problem(DType::f32, DType::f32);
  gemm.epilogue = op::linear_combination_generic(op::Activation::leaky_relu, DType::f32, 0.125);
  const auto leaky = parameters_of<Leaky>(launch_gemm(tile_for(gemm), {}, 0, op::view(gemm)));
  EXPECT_EQ(leaky.epilogue.alpha, 2.0F);
  EXPECT_EQ(leaky.epilogue.beta, -3.0F);
  EXPECT_EQ(leaky.epilogue.leaky_alpha, 0.125F);
  gemm.epilogue = {"plain", DType::f32, {{op::EpilogueOp::accumulator, {-1, -1}, 0.0, {}}}};
  const auto plain = parameters_of<NoScalars>(launch_gemm(tile_for(gemm), {}, 0, op::view(gemm)));
  EXPECT_EQ(plain.tiles.tiles_n, 3);
}

TEST(Launching, OperandsThatAreNotReadAreNotPassed) {
  op::Gemm gemm = problem(DType::f32, DType::f32);
  gemm.beta = 0.0;
  const auto no_source = parameters_of<AlphaBeta<float>>(launch_gemm(tile_for(gemm), {}, 0, op::view(gemm)));
  EXPECT_EQ(no_source.c, 0U);
  EXPECT_EQ(no_source.ldc, 0);
  EXPECT_EQ(no_source.k, 33);
  gemm.alpha = 0.0;
  const auto no_product = parameters_of<AlphaBeta<float>>(launch_gemm(tile_for(gemm), {}, 0, op::view(gemm)));
  EXPECT_EQ(no_product.k, 0);
}

TEST(Extents, MustFitTheKernelsIntegersAndTheGrid) {
  const GemmTile tile = tile_for(problem(DType::f32, DType::f32));
  const auto extents = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    op::Gemm gemm;
    gemm.a = op::matrix(std::uint64_t{0xa0000}, DType::f32, m, k);
    gemm.b = op::matrix(std::uint64_t{0xb0000}, DType::f32, k, n);
    gemm.d = op::matrix(std::uint64_t{0xd0000}, DType::f32, m, n);
    return check_extents(tile, op::view(gemm));
  };
  constexpr std::int64_t kLargest = 2147482623;
  EXPECT_TRUE(extents(kLargest, 1, 1));
  EXPECT_TRUE(extents(1, 1, kLargest));
  EXPECT_EQ(extents(kLargest + 1, 1, 1).reason(), "m must be at most 2147482623, got 2147482624");
  EXPECT_EQ(extents(1, 1, kLargest + 1).reason(), "k must be at most 2147482623, got 2147482624");
  EXPECT_EQ(extents(std::int64_t{1} << 30, std::int64_t{1} << 30, 1).reason(),
            "needs 562949953421312 CTAs, more than the 2147483647 of a grid");
  EXPECT_TRUE(extents(64 * 46340, 32 * 46340, 1)) << "2147395600 CTAs";
  EXPECT_FALSE(extents(64 * 46341, 32 * 46341, 1)) << "2147488281 CTAs";
}

TEST(Extents, MustFitTheRaster) {
  GemmTile tile = tile_for(problem(DType::f32, DType::f32));
  tile.tile = {4, 4, 4};
  tile.raster.width = 8;
  op::Gemm gemm;
  gemm.a = op::matrix(std::uint64_t{0xa0000}, DType::f32, 4 * 268435455, 1);
  gemm.b = op::matrix(std::uint64_t{0xb0000}, DType::f32, 1, 4);
  gemm.d = op::matrix(std::uint64_t{0xd0000}, DType::f32, 4 * 268435455, 4);
  EXPECT_TRUE(check_extents(tile, op::view(gemm))) << check_extents(tile, op::view(gemm)).reason();
  gemm.a.shape[0] = gemm.d.shape[0] = 4 * 268435455 + 1;
  EXPECT_EQ(check_extents(tile, op::view(gemm)).reason(),
            "a raster of width 8 must have at most 268435455 tiles a column, got 268435456");
  tile.raster.width = 4;
  EXPECT_TRUE(check_extents(tile, op::view(gemm))) << check_extents(tile, op::view(gemm)).reason();
}

TEST(LaunchParameters, EveryFieldIsAtAMultipleOfItsSize) {
  Launch launch;
  launch.append(std::uint8_t{1});
  launch.append(std::uint32_t{2});
  launch.append(std::uint8_t{3});
  launch.append(std::uint64_t{4});
  EXPECT_EQ(launch.parameters().size(), 24U);
  launch.append(std::uint8_t{5});
  launch.finish();
  EXPECT_EQ(launch.parameters().size(), 32U);
  for (int i = 0; i < 1020; ++i) launch.append(std::uint64_t{0});
  EXPECT_EQ(launch.parameters().size(), 8192U);
  EXPECT_THROW(launch.append(std::uint8_t{0}), InvalidArgument);
}

TEST(LaunchParameters, TensorMapsAreAlignedTo64BytesAndFilledInLater) {
  Launch launch;
  launch.append(std::uint32_t{1});
  launch.append(TensorMapRequest{});
  launch.append(std::uint32_t{2});
  ASSERT_EQ(launch.tensor_maps().size(), 1U);
  const TensorMapRequest& request = launch.tensor_maps().front();
  EXPECT_EQ(request.parameter_offset, 64U);
  EncodedTensorMap encoded;
  encoded.bytes.back() = std::byte{7};
  launch.set_tensor_map(request, encoded);
  EXPECT_EQ(launch.parameters()[64 + 127], std::byte{7});
  EXPECT_EQ(launch.parameters()[64 + 128], std::byte{2});
}

TEST(Warps, MustBePowersOfTwo) {
  GemmTiling design;
  EXPECT_TRUE(check_warps_are_powers_of_two(design));
  design.warps_m = 3;
  EXPECT_EQ(check_warps_are_powers_of_two(design).reason(), "warp count m must be a power of two, got 3");
}

TEST(Launching, PointerArraysArePassedByTheirAddress) {
  op::Gemm gemm = problem(DType::f32, DType::f32);
  for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d})
    *tensor = op::pointer_array(op::matrix_at(*tensor, 0), tensor->address, 70000);
  const Launch launch = launch_gemm(tile_for(gemm), {}, 0, op::view(gemm));
  EXPECT_EQ(launch.grid, (std::array<std::uint32_t, 3>{2 * 3, 2, 35000})) << "one launch for all matrices";
  const auto p = parameters_of<AlphaBeta<float>>(launch);
  EXPECT_EQ(p.a, 0xa0000U);
  EXPECT_EQ(p.d, 0xd0000U);
  EXPECT_EQ(p.batch_stride_a, 0);
  EXPECT_EQ(p.batch, 70000U);
  gemm.alpha = gemm.beta = 0.0;  // the arrays may be missing, and must not be read
  const auto unread = parameters_of<AlphaBeta<float>>(launch_gemm(tile_for(gemm), {}, 0, op::view(gemm)));
  EXPECT_EQ(unread.a, 0U);
  EXPECT_EQ(unread.b, 0U);
  EXPECT_EQ(unread.c, 0U);
  EXPECT_EQ(unread.k, 0);
}

/// A problem with groups of an f32 design of 128 x 128.
op::GroupedGemm grouped_gemm(op::GroupedMode mode, std::int64_t capacity, std::int64_t groups) {
  op::GroupedGemm grouped{.gemm = {}, .mode = mode, .ends = op::group_ends(9 << 20, groups)};
  const bool along_n = op::differs_in_n(mode);
  const auto at = [](int number) { return static_cast<std::uint64_t>(number) << 20; };
  const auto operand = [&](int number, std::int64_t rows, std::int64_t columns, bool is_batch) {
    const op::Tensor one = op::matrix(at(number), DType::f32, rows, columns);
    return is_batch ? op::batched(one, groups) : one;
  };
  const std::int64_t m = along_n ? 300 : capacity, n = along_n ? capacity : 300;
  grouped.gemm.a = operand(1, m, 64, mode != op::GroupedMode::ragged_m);
  grouped.gemm.b = operand(2, 64, n, mode != op::GroupedMode::ragged_n);
  grouped.gemm.d = operand(3, m, n, !op::is_ragged(mode));
  return grouped;
}

TEST(GroupTiles, AreAsManyAsTheSizesOfGroupsMayNeed) {
  struct Case {
    op::GroupedMode mode;
    std::int64_t capacity, groups, tiles;
  };
  for (const auto& [mode, capacity, groups, tiles] :
       {Case{op::GroupedMode::ragged_m, 1000, 1, 8},
        {op::GroupedMode::ragged_m, 1000, 4, 11},
        {op::GroupedMode::ragged_m, 3, 64, 3},  // at most three groups have a row
        {op::GroupedMode::ragged_n, 1000, 4, 11},
        {op::GroupedMode::masked_m, 1000, 4, 32},
        {op::GroupedMode::masked_n, 1000, 4, 32}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", op::name(mode), capacity, groups));
    const op::GroupedGemm grouped = grouped_gemm(mode, capacity, groups);
    const op::GemmView view = op::view(grouped);
    const GemmTile tile = plan_gemm_tile(op::describe(view), simt_design()).value_or_throw();
    const TileCounts counts = tile_counts(tile, view);
    const bool along_n = op::differs_in_n(mode);
    EXPECT_EQ(along_n ? counts.n : counts.m, tiles);
    EXPECT_EQ(along_n ? counts.m : counts.n, 3);
    const Launch launch = launch_gemm(tile, {}, 0, view);
    EXPECT_EQ(launch.grid, (std::array<std::uint32_t, 3>{static_cast<std::uint32_t>(3 * tiles), 1, 1}));
    std::uint64_t ends = 0;
    std::memcpy(&ends, launch.parameters().data(), sizeof(ends));
    EXPECT_EQ(ends, grouped.ends.address);
  }
}

/// The bound is reached: the worst sizes are those of groups that all but one waste all of a tile but one row.
TEST(GroupTiles, TheBoundIsReached) {
  for (std::int64_t groups = 1; groups < 20; ++groups) {
    for (const std::int64_t capacity : {1, 5, 20, 127, 128, 129, 1000, 3000}) {
      const op::GroupedGemm grouped = grouped_gemm(op::GroupedMode::ragged_m, capacity, groups);
      const op::GemmView view = op::view(grouped);
      const GemmTile tile = plan_gemm_tile(op::describe(view), simt_design()).value_or_throw();
      const std::int64_t small = std::min(groups, capacity) - 1;  // groups of one row; one more has the rest
      EXPECT_EQ(tile_counts(tile, view).m, small + (capacity - small + 127) / 128) << capacity << ' ' << groups;
    }
  }
}

/// Independent groups have persistent CTAs: no more than are resident, or than there may be tiles.
TEST(GroupTiles, OfIndependentGroupsAreTakenByPersistentCtas) {
  for (const auto& [groups, ctas] : {std::pair{3, 72U}, {1000, 264U}}) {
    op::GroupedGemm grouped = grouped_gemm(op::GroupedMode::masked_m, 1000, groups);
    grouped.mode = op::GroupedMode::independent;
    for (op::Tensor* const tensor : {&grouped.gemm.a, &grouped.gemm.b, &grouped.gemm.d})
      *tensor = op::pointer_array(op::matrix_at(*tensor, 0), tensor->address, groups);
    grouped.ends = op::group_extents(9 << 20, groups);
    grouped.leading_dimensions = op::group_leading_dimensions(10 << 20, groups);
    const op::GemmView view = op::view(grouped);
    const GemmTile tile = plan_gemm_tile(op::describe(view), simt_design()).value_or_throw();
    const Launch launch = launch_gemm(tile, {.ctas_per_sm = 2, .sms = 132}, 0, view);
    EXPECT_EQ(launch.grid, (std::array<std::uint32_t, 3>{ctas, 1, 1}));
    std::array<std::uint64_t, 2> addresses{};
    std::memcpy(addresses.data(), launch.parameters().data(), sizeof(addresses));
    EXPECT_EQ(addresses, (std::array{grouped.ends.address, grouped.leading_dimensions.address}));
  }
}

TEST(GroupTiles, AreNotSplitAlongK) {
  const op::GroupedGemm grouped = grouped_gemm(op::GroupedMode::ragged_m, 1000, 4);
  SimtGemmDesign design = simt_design();
  design.split_k = 2;
  EXPECT_EQ(plan_gemm_tile(op::describe(op::view(grouped)), design).reason(),
            "groups (ragged_m) are computed without split-K, got split_k 2");
}

}  // namespace
}  // namespace tilewright::plan
