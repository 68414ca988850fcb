// The designs that sm90_gemm offers for a problem, and how the cost model ranks designs that were measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/unit/plan/convolution_case.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/op/conv2d.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/op/grouped_gemm.hpp"
#include "tilewright/op/padded_taps.hpp"
#include "tilewright/op/tap_columns.hpp"
#include "tilewright/plan/search.hpp"
#include "tilewright/plan/short_k.hpp"
#include "tilewright/plan/sm90/cost.hpp"
#include "tilewright/plan/sm90/im2col.hpp"
#include "tilewright/plan/sm90/launch.hpp"

namespace tilewright::plan {
namespace {

std::vector<Sm90GemmDesign> designs_of(const op::Gemm& gemm) {
  return sm90_gemm_designs(op::view(gemm), op::describe(gemm), kSm90);
}

/// Calls check for all layouts of A, B and D and for several alignments of at most 16 bytes. C is always row-major,
/// because plans do not depend on its layout.
template <class Check>
void for_each_description(const TypeCase& types, Check&& check) {
  for (const Layouts& layouts : all_layouts()) {
    if (layouts.c != kRow) continue;
    for (const auto& [a, b, d] : {std::tuple{16, 16, 16}, {8, 16, 16}, {16, 4, 1}, {1, 1, 16}, {4, 8, 2}}) {
      op::GemmSignature description = describe(types, layouts);
      description.a.alignment = std::max(1, a / bytes(types.a));
      description.b.alignment = std::max(1, b / bytes(types.b));
      description.d.alignment = std::max(1, d / bytes(types.d));
      check(description);
    }
  }
}

// An offered kernel is planned only when its text is needed, which is too late for a refusal.
TEST(Sm90Search, EveryOfferedDesignCanBePlanned) {
  int offered = 0;
  for (const TypeCase& types : type_cases()) {
    for_each_description(types, [&](const op::GemmSignature& description) {
      for (const auto& [m, n, k, batch] : {std::tuple{1, 4096, 4096, 1},
                                           {16, 28672, 4096, 1},
                                           {4096, 4096, 4096, 1},
                                           {192, 8192, 8192, 1},
                                           {4095, 200, 333, 3},
                                           {33, 17, 19, 1},
                                           {128, 128, 65536, 1}}) {
        op::Gemm gemm = problem_of(description, m, n, k);
        for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) *tensor = op::batched(*tensor, batch);
        for (const Sm90GemmDesign& design : sm90_gemm_designs(op::view(gemm), description, kSm90)) {
          const Result<Sm90GemmSketch> sketch = sketch_sm90_gemm(description, design);
          const Result<Sm90GemmPlan> plan = plan_sm90_gemm(description, design);
          ASSERT_TRUE(sketch) << to_string(description) << " " << to_string(design) << ": " << sketch.reason();
          ASSERT_TRUE(plan) << to_string(description) << " " << to_string(design) << ": " << plan.reason();
          EXPECT_EQ(static_cast<const Sm90GemmSketch&>(*plan), *sketch);
          EXPECT_EQ(plan->stage_bytes(), round_up(plan->a.tile_bytes() + plan->b.tile_bytes(), 1024));
          EXPECT_EQ(plan->loads_fragments(), plan->a.fragments.has_value());
          EXPECT_EQ(plan->uses_plain_loads(), plan->a.uses_plain_loads() || plan->b.uses_plain_loads());
          EXPECT_GE(plan->stages, 3);
          ++offered;
        }
      }
    });
  }
  EXPECT_GT(offered, 40000);
}

TEST(Sm90Search, EveryOfferedDesignAcceptsTheArguments) {
  for (const TypeCase& types : type_cases()) {
    for (const Layouts& layouts : {Layouts{kRow, kColumn, kRow, kRow}, Layouts{kRow, kColumn, kColumn, kColumn}}) {
      for (const auto& [m, n, k] :
           {std::tuple{1, 4096, 4096}, {16, 1280, 8192}, {4096, 4096, 4096}, {128, 128, 65536}}) {
        const op::Gemm gemm = problem_of(describe(types, layouts), m, n, k);
        for (const Sm90GemmDesign& design : designs_of(gemm)) {
          const Result<Sm90GemmSketch> sketch = sketch_sm90_gemm(op::describe(gemm), design);
          ASSERT_TRUE(sketch) << to_string(design) << ": " << sketch.reason();
          EXPECT_TRUE(check_arguments(*sketch, op::view(gemm))) << to_string(design);
        }
      }
    }
  }
}

// The search estimates designs from a plan sketch; the complete plan must have the same estimate.
TEST(Sm90Search, RanksAsTheCompletePlansAreRanked) {
  for (const TypeCase& types : type_cases()) {
    for (const int alignment_bytes : {16, 1}) {
      op::Gemm gemm = problem_of(describe(types), 4095 + alignment_bytes % 2, 1280, 8192);
      if (alignment_bytes == 1) gemm.a.stride = {gemm.k() + 1, 1};
      double before = 0;
      for (const Sm90GemmDesign& design : designs_of(gemm)) {
        const Sm90GemmPlan plan = plan_sm90_gemm(op::describe(gemm), design).value_or_throw();
        const double us = estimate_us(arch::limits(kSm90), cost_input(plan, op::view(gemm)));
        EXPECT_GE(us, before) << to_string(design);
        before = us;
      }
    }
  }
}

TEST(Sm90Search, RanksConvolutionsAsTheCompletePlansAreRanked) {
  using op::ConvPass;
  for (const ConvPass pass : {ConvPass::fprop, ConvPass::dgrad, ConvPass::wgrad}) {
    for (const auto& [type, stride] : {std::pair{DType::f16, 1}, {DType::f16, 2}, {DType::f32, 1}}) {
      const std::int64_t pixels = stride == 1 ? 30 : 15;
      op::Conv2d conv = convolution(pass);
      conv.stride = {stride, stride};
      conv.x = op::packed_tensor(kApart, type, {8, 30, 30, 136});
      conv.w = op::packed_tensor(2 * kApart, type, {200, 3, 3, 136});
      conv.y = op::packed_tensor(3 * kApart, type, {8, pixels, pixels, 200});
      if (type == DType::f32) conv.math = op::MathOperation::multiply_add_tf32;
      const op::GemmView view = op::view(conv);
      std::vector<op::GemmView> views{view};
      for (const std::int64_t row : padded_tap_rows(view))
        views.push_back(pass == ConvPass::wgrad ? op::with_padded_columns(view, row) : op::with_padded_taps(view, row));
      for (const op::GemmView& each : views) {
        double before = 0;
        for (const Sm90GemmDesign& design : sm90_gemm_designs(each, op::describe(each), kSm90a)) {
          const Sm90GemmPlan plan = plan_sm90_gemm(op::describe(each), design).value_or_throw();
          const double us = estimate_us(arch::limits(kSm90a), cost_input(plan, each));
          EXPECT_GE(us, before) << to_string(design) << " of pass " << static_cast<int>(pass);
          before = us;
        }
      }
    }
  }
}

/// The design with the largest number of stages that fits, if any does.
std::optional<Sm90GemmDesign> deepest(const op::GemmSignature& description, Sm90GemmDesign design) {
  for (design.stages = 16; design.stages >= 3; --design.stages) {
    if (sketch_sm90_gemm(description, design)) return design;
  }
  return std::nullopt;
}

// The search discards most candidates by a lower bound, before their exact estimate.
TEST(Sm90Search, NothingBetterIsLeftOut) {
  const op::GemmSignature description = describe_f16();
  for (const auto& [m, n, k] : {std::tuple{4096, 4096, 4096}, {1024, 1280, 8192}, {256, 8192, 512}}) {
    const op::Gemm gemm = problem_of(description, m, n, k);
    const auto us_of = [&](const Sm90GemmDesign& design) {
      return estimate_us(arch::limits(kSm90), cost_input(*sketch_sm90_gemm(description, design), op::view(gemm)));
    };
    const std::vector<Sm90GemmDesign> offered = designs_of(gemm);
    int left_out = 0;
    for (const auto& [rows, consumers] : {std::pair{64, 1}, {128, 2}, {192, 3}, {256, 2}}) {
      for (const int columns : {32, 64, 96, 128, 160, 192, 224, 256}) {
        for (const auto& [cluster_m, cluster_n] : {std::pair{1, 1}, {2, 1}, {1, 2}, {4, 1}, {1, 4}}) {
          if (columns % (16 * cluster_m) != 0) continue;  // the search offers no narrower shares of B
          for (const int split_k : {1, 2, 3, 4}) {
            Sm90GemmDesign design = sm90_design({{rows, columns, 64}, 0, {4 * consumers, 1}}, {cluster_m, cluster_n});
            const auto read = [&](bool along_n) {
              const ReadShare share = read_share({8, along_n}, ceil_div(m, rows), ceil_div(n, columns));
              return share.a * rows + share.b * columns;
            };
            const bool along_n = read(true) < read(false) || (read(true) == read(false) && n > m);
            design.raster = m <= 2 * rows ? Raster{1} : Raster{8, along_n};
            design.split_k = split_k;
            const std::optional<Sm90GemmDesign> fits = deepest(description, design);
            if (!fits || std::ranges::count(offered, *fits) > 0) continue;
            EXPECT_GE(us_of(*fits), us_of(offered.back())) << to_string(*fits);
            ++left_out;
          }
        }
      }
    }
    EXPECT_GT(left_out, 100);
  }
}

// Repacking A moves 3.8 GB, and B 58 MB.
TEST(Sm90Search, RepacksOnlyBOfAnAThatGoesThroughRegisters) {
  constexpr TypeCase kTf32{DType::f32, DType::f32, DType::f32, DType::f32, op::MathOperation::multiply_add_tf32};
  const auto first = [&](const Layouts& layouts, std::int64_t m) {
    return designs_of(problem_of(describe(kTf32, layouts, 4), m, 400, 17984)).front();
  };
  EXPECT_TRUE(first({kColumn, kRow, kRow, kRow}, 26560).repacks_only_b);
  EXPECT_TRUE(first({kColumn, kRow, kRow, kRow}, 26560).repacks_operands);
  EXPECT_FALSE(first({kColumn, kRow, kRow, kRow}, 26559).repacks_only_b);  // TMA cannot load A
  EXPECT_FALSE(first({kRow, kRow, kRow, kRow}, 26560).repacks_only_b);     // A is contiguous along K
}

TEST(Sm90Search, OffersTwelveDesignsAndNoneForOtherTargetsAndTypes) {
  const op::Gemm gemm = problem_of(describe_f16(), 4096, 4096, 4096);
  EXPECT_EQ(designs_of(gemm).size(), 12U);
  EXPECT_TRUE(sm90_gemm_designs(op::view(gemm), op::describe(gemm), kSm80).empty());
  EXPECT_TRUE(designs_of(problem_of(describe_f32(), 4096, 4096, 4096)).empty());
}

TEST(Sm90Search, EmptyProblemsAreSearchedToo) {
  for (const auto& [m, n, k] : {std::tuple{0, 4096, 4096}, {4096, 0, 4096}, {64, 64, 0}}) {
    EXPECT_FALSE(designs_of(problem_of(describe_f16(), m, n, k)).empty());
  }
}

// Repacking costs time per byte of the operand. Plain loads cost time per byte of every tile, and registers, which
// large tiles lack.
TEST(Sm90Search, RepacksLargeOperands) {
  const op::Gemm large = problem_of(describe_f16({}, 2), 4095, 4095, 4095);
  EXPECT_TRUE(designs_of(large).front().repacks_operands);
  const op::Gemm small = problem_of(describe_f16({}, 2), 255, 255, 255);
  EXPECT_FALSE(designs_of(small).front().repacks_operands);
  for (const Sm90GemmDesign& design : designs_of(problem_of(describe_f16(), 4096, 4096, 4096))) {
    EXPECT_FALSE(design.repacks_operands) << to_string(design);
  }
  // 100 million lines of 128 bytes would not fit the workspace.
  for (const Sm90GemmDesign& design : designs_of(problem_of(describe_f16({}, 2), 100'000'000, 64, 5))) {
    EXPECT_FALSE(design.repacks_operands) << to_string(design);
  }
}

op::Conv2d strided_gradient(std::int64_t images, std::int64_t side, std::int64_t channels) {
  return {.pass = op::ConvPass::dgrad,
          .x = op::packed_tensor(std::uint64_t{1} << 40, DType::bf16, {images, side, side, channels}),
          .w = op::packed_tensor(std::uint64_t{2} << 40, DType::bf16, {channels, 3, 3, channels}),
          .y = op::packed_tensor(std::uint64_t{3} << 40, DType::bf16, {images, side / 2, side / 2, channels}),
          .c = {},
          .padding = {1, 1},
          .stride = {2, 2}};
}

// A quarter of the pixels has four ninths of the products: with tiles of 128x256, those of this class alone, which 26
// CTAs compute, would take as long as all others.
TEST(Sm90Search, ClassesOfPixelsAreSharedByMoreCtasThanOneHasTiles) {
  const op::Conv2d conv = strided_gradient(32, 14, 512);
  const op::GemmView view = op::view(conv);
  const std::vector<Sm90GemmDesign> designs = sm90_gemm_designs(view, op::describe(view), kSm90);
  ASSERT_FALSE(designs.empty());
  const TileShape& tile = designs.front().tile;
  EXPECT_LE(tile.m * tile.n, 128 * 128);
}

TEST(Sm90Search, StepsAreNoLongerThanK) {
  const auto step_of = [](std::int64_t k) {
    return designs_of(problem_of(describe_f16(), 100'000, 32, k)).front().tile.k;
  };
  EXPECT_EQ(step_of(16), 16);
  EXPECT_EQ(step_of(24), 32);
  EXPECT_EQ(step_of(64), 64);
  EXPECT_GE(step_of(80), 64);
}

// With one mainloop step per tile, stages hide the latency of DRAM, unless the lines of A share lines of L2.
TEST(Sm90Search, ShortKIsLoadedFarAheadIfLinesAreAligned) {
  const auto ahead_bytes = [](std::int64_t k) {
    int bytes = 0;
    for (const Sm90GemmDesign& design : designs_of(problem_of(describe_f16({kRow, kColumn}), 100'352, 256, k)))
      bytes = std::max(bytes, design.stages * (design.tile.m + design.tile.n) * design.tile.k * 2);
    return bytes;
  };
  EXPECT_GT(ahead_bytes(64), 128 * 1024);
  EXPECT_LE(ahead_bytes(24), 96 * 1024);
}

TEST(Sm90Search, NarrowTilesMayBeTall) {
  EXPECT_GT(designs_of(problem_of(describe_f16(), 3'000'000, 32, 16)).front().tile.m, 256);
  for (const Sm90GemmDesign& design : designs_of(problem_of(describe_f16(), 3'000'000, 128, 16)))
    EXPECT_TRUE(design.tile.m <= 256 || design.tile.n <= 64) << to_string(design);
  // So few tiles would leave SMs idle, in either orientation.
  for (const Sm90GemmDesign& design : designs_of(problem_of(describe_f16({kRow, kColumn}), 2, 29312, 11696)))
    EXPECT_LE(std::max(design.tile.m, design.tile.n), 256) << to_string(design);
}

// Where B is contiguous along N, tiles of 160 columns are loaded in rows of 64 bytes; they fill more SMs than 192.
TEST(Sm90Search, TilesWithNarrowRowsMayBeFirst) {
  const std::vector<Sm90GemmDesign> designs = designs_of(problem_of(describe_f16({kColumn, kRow}), 1408, 1600, 11904));
  ASSERT_FALSE(designs.empty());
  EXPECT_EQ(designs.front().tile.n, 160) << to_string(designs.front());
}

TEST(Sm90Search, FewRowsAreAlongTheNOfTheInstruction) {
  const std::vector<Sm90GemmDesign> designs = designs_of(problem_of(describe_f16(), 8, 8192, 8192));
  ASSERT_FALSE(designs.empty());
  EXPECT_TRUE(designs.front().swaps_operands);
  EXPECT_EQ(designs.front().tile.m, 8);
}

// Rows at odd multiples of 16 bytes take more of the bandwidth of L2, which clusters save.
TEST(Sm90Search, RowsBetweenSectorsAreSharedByMulticast) {
  const auto first = [](std::int64_t k) {
    return designs_of(problem_of(describe_f16({kRow, kColumn}), 4176, 5408, k)).front();
  };
  const Sm90GemmDesign odd = first(2488);
  EXPECT_GT(odd.cluster_m * odd.cluster_n, 1) << to_string(odd);
  EXPECT_EQ(sector_read_amplification(op::matrix(std::uint64_t{0}, DType::f16, 4176, 2488)), 1.5);
  EXPECT_EQ(sector_read_amplification(op::matrix(std::uint64_t{0}, DType::f16, 4176, 2496)), 1.0);
}

TEST(Sm90Search, AdjacentCtasShareBIfThereAreAtMostTwoRowsOfTiles) {
  const std::vector<Sm90GemmDesign> two = designs_of(problem_of(describe_f16(), 2048, 2048, 4096));
  EXPECT_EQ(two.front().raster.width, 8);
  for (const Sm90GemmDesign& design : designs_of(problem_of(describe_f16(), 128, 8192, 8192))) {
    if (!design.swaps_operands) {
      EXPECT_EQ(design.raster.width, 1) << to_string(design);
    }
  }
}

// Adjacent tiles share the operand of which eight of them then need the least: with 128x128 tiles the larger one, with
// few rows of tiles B.
TEST(Sm90Search, AdjacentTilesReadLeast) {
  const auto read = [](const Raster& raster, std::int64_t tiles_m, std::int64_t tiles_n) {
    const ReadShare share = read_share(raster, tiles_m, tiles_n);
    return 128 * (share.a + share.b);
  };
  EXPECT_EQ(read({8, false}, 32, 32), read({8, true}, 32, 32));
  EXPECT_GT(read({8, false}, 3, 40), read({8, true}, 3, 40));  // 8 + 1 tile rows and columns, 3 + 3
  EXPECT_EQ(read_share({8, false}, 0, 40).a, 1) << "no tiles";
  for (const auto& [m, n] : {std::pair{304, 5000}, {5000, 304}}) {
    for (const Sm90GemmDesign& design : designs_of(problem_of(describe_f16({kRow, kColumn}), m, n, 3008))) {
      if (design.raster.width != 8 || design.split_k > 1) continue;
      EXPECT_EQ(design.raster.along_n, m < n) << to_string(design);
    }
  }
}

double estimate_of(Sm90CostInput input) {
  input.fma_per_clock = arch::fma_per_clock(arch::limits(kSm90), arch::MathUnit::wgmma, DType::bf16);
  return estimate_us(arch::limits(kSm90), input);
}

// With a short K, D takes most of the time: a wave of tiles writes whole lines of it, unless the operand that is read
// again for each line does not stay in L2.
TEST(Sm90Search, ShortKIsWalkedAlongTheLinesOfD) {
  const auto first = [](op::MatrixLayout d, std::int64_t m, std::int64_t n, std::int64_t k) {
    return designs_of(problem_of(describe_f16({kRow, kColumn, d, d}), m, n, k)).front().raster;
  };
  EXPECT_EQ(first(kRow, 16384, 16384, 64), (Raster{1, true}));
  EXPECT_EQ(first(kColumn, 16384, 16384, 64), (Raster{1, false}));
  EXPECT_EQ(first(kRow, 16384, 8192, 512), (Raster{1, true}));
  EXPECT_EQ(first(kRow, 65536, 768, 192), (Raster{8, false}));  // a line has six tiles, and B stays in shared memory
  EXPECT_EQ(first(kRow, 4096, 2048, 64), (Raster{8, true}));    // D fits in L2
  EXPECT_EQ(first(kRow, 4096, 32768, 256), (Raster{8, false}));
  EXPECT_EQ(first(kRow, 65536, 65536, 256), (Raster{8, true}));
}

// If all tiles of a CTA need the same columns, and their steps divide the stages, B is loaded once.
TEST(Sm90Cost, OperandsThatStayAreLoadedOnce) {
  const auto input_of = [](std::int64_t n, int stages, const Raster& raster) {
    Sm90CostInput input{.m = 300000, .n = n, .k = 128, .tile = {128, 128, 64}, .stages = stages, .raster = raster};
    set_kept_parts(arch::limits(kSm90), input);
    return input;
  };
  EXPECT_EQ(input_of(128, 6, {8, true}).parts_of_b, 1);
  EXPECT_EQ(input_of(128, 5, {8, true}).parts_of_b, 0) << "two steps do not divide five stages";
  EXPECT_EQ(input_of(384, 6, {8, true}).parts_of_b, 0);
  EXPECT_EQ(input_of(384, 6, {8, false}).parts_of_b, 1) << "132 CTAs take the tiles of three columns in turn";
  EXPECT_EQ(input_of(640, 6, {8, false}).parts_of_b, 0) << "groups of four of five columns";
  EXPECT_EQ(input_of(640, 6, {1, false}).parts_of_b, 5) << "one column after the other";
  EXPECT_EQ(input_of(128, 6, {8, true}).parts_of_a, 0);
  EXPECT_EQ(input_of(0, 6, {8, false}).parts_of_b, 0) << "no tiles";
  EXPECT_LT(estimate_of(input_of(128, 6, {8, true})), estimate_of(input_of(128, 5, {8, true})));
  const op::Gemm tall = problem_of(describe_f16(), 300000, 64, 192);
  const Sm90GemmDesign design = designs_of(tall).front();
  EXPECT_EQ(design.stages % ceil_div(192, design.tile.k), 0) << to_string(design);
}

// A CTA reads an operand that is contiguous along M or N, and writes D, in lines as long as its tile.
TEST(Sm90Cost, ShortLinesOfMemoryCost) {
  // f32 output, 4x9728x28728 with a row-major B: 192 us for tiles of 128 columns in clusters of four, 251 us without
  // clusters (H100, 2026-11-25).
  Sm90CostInput input{.m = 9728, .n = 8, .k = 28728, .tile = {128, 8, 64}, .stages = 12};
  const double along_k = estimate_of(input);
  input.is_mn_major_a = true;
  const double along_m = estimate_of(input);
  EXPECT_GT(along_m, along_k);
  input.cluster_m = 4;
  EXPECT_LT(estimate_of(input), along_m);
}

// Sectors at the ends of lines of D are written in two parts, which takes longer if L2 cannot hold D. Clusters along
// the lines write fewer of them apart: f16 23168x25608x128 took 833 us in pairs along M, and 611 us in fours along N
// (H200).
TEST(Sm90Cost, LinesOfDThatSplitSectorsCost) {
  Sm90CostInput input{
      .m = 23168, .n = 25608, .k = 128, .tile = {128, 128, 64}, .stages = 6, .schedule = Schedule::ping_pong};
  const double whole_sectors = estimate_of(input);
  input.d_splits_sectors = true;
  const double split_sectors = estimate_of(input);
  EXPECT_GT(split_sectors, whole_sectors);
  input.cluster_n = 4;
  EXPECT_LT(estimate_of(input), split_sectors);
  input.m = 2'000'000;
  input.n = 500;  // a cluster writes whole lines of D, one after another
  const double whole_lines = estimate_of(input);
  input.d_splits_sectors = false;
  EXPECT_EQ(whole_lines, estimate_of(input));
  Sm90CostInput in_l2{.m = 1024, .n = 1032, .k = 128, .tile = {128, 128, 64}, .stages = 6};
  const double in_whole_sectors = estimate_of(in_l2);
  in_l2.d_splits_sectors = true;
  EXPECT_EQ(estimate_of(in_l2), in_whole_sectors);
}

TEST(Sm90Search, ClustersFollowLinesOfDThatSplitSectors) {
  const op::Gemm gemm = problem_of(describe_f16({kColumn, kRow}), 23168, 25608, 128);
  EXPECT_EQ(designs_of(gemm).front().cluster_n, 4) << to_string(designs_of(gemm).front());
}

// The design that was faster is ranked first. The times are medians of bf16 on an H200, 2026-11-21.
TEST(Sm90Cost, RanksAsMeasured) {
  const Sm90CostInput cooperative{
      .m = 8192, .n = 8192, .k = 512, .tile = {128, 256, 64}, .stages = 4, .cluster_m = 2, .subtiles = 4};
  Sm90CostInput ping_pong = cooperative;  // 113.7 us against 141 us
  ping_pong.tile = {128, 192, 64};
  ping_pong.cluster_m = 1;
  ping_pong.subtiles = 6;
  ping_pong.schedule = Schedule::ping_pong;
  EXPECT_LT(estimate_of(ping_pong), estimate_of(cooperative));

  const Sm90CostInput whole{.m = 1280, .n = 16, .k = 8192, .tile = {64, 16, 64}, .stages = 16};
  Sm90CostInput split = whole;  // 13.1 us against 17.4 us
  split.split_k = 2;
  split.subtiles = 0;
  EXPECT_LT(estimate_of(split), estimate_of(whole));
}

// The same for lines of L2 that many CTAs read at once, and for the boxes in which TMA stores D; H200, 2026-11-23.
TEST(Sm90Cost, HotLinesAndBoxesOfDCost) {
  // bf16 128x4832x32: all CTAs share the rows of A in 128x40, and a third of them in 48x128; 7.0 us against 6.2 us.
  // Partial sectors of D are left out, so that only the hot lines differ much.
  const Sm90CostInput shared{.m = 128, .n = 4832, .k = 32, .tile = {128, 40, 64}, .stages = 4};
  const Sm90CostInput spread{.m = 4832, .n = 128, .k = 32, .tile = {128, 48, 64}, .stages = 4};
  EXPECT_LT(estimate_of(spread), estimate_of(shared));

  // bf16 7168x7168x1168, ping-pong: 128x176 needs 22 boxes for a tile and 128x160 needs 10; 194 us against 167 us,
  // which had a cluster of two.
  Sm90CostInput boxes{.m = 7168,
                      .n = 7168,
                      .k = 1168,
                      .tile = {128, 160, 64},
                      .stages = 5,
                      .schedule = Schedule::ping_pong,
                      .subtiles = 6,
                      .tile_stores = {.boxes = 10}};
  const double few = estimate_of(boxes);
  boxes.tile_stores.boxes = 22;
  EXPECT_GT(estimate_of(boxes), few);
}

// With a gelu epilogue, 192x192 tiles of three cooperative warpgroups took 354.8 us, because all of them wait for the
// epilogue; 128x192 tiles in the ping-pong schedule took 349.0 us (2048x4608x12288, H200).
TEST(Sm90Cost, FunctionsAreHiddenInPingPong) {
  const op::Epilogue gelu = op::make_epilogue("gelu", DType::f32, op::call("gelu_tanh", {op::acc()})).value_or_throw();
  EXPECT_EQ(function_instructions(gelu), 12);
  EXPECT_EQ(function_instructions(op::linear_combination()), 0);
  Sm90CostInput cooperative{.m = 2048, .n = 4608, .k = 12288, .tile = {192, 192, 64}, .stages = 3, .subtiles = 3};
  Sm90CostInput ping_pong = cooperative;
  ping_pong.tile = {128, 192, 64};
  ping_pong.subtiles = 6;
  ping_pong.schedule = Schedule::ping_pong;
  const auto cost_of_functions = [&](Sm90CostInput input) {
    const double plain = estimate_of(input);
    input.function_instructions = function_instructions(gelu);
    return estimate_of(input) - plain;
  };
  EXPECT_LT(cost_of_functions(ping_pong), cost_of_functions(cooperative));
}

// A further tensor of D's size increases the time of a DRAM-bound product by the time of its traffic.
TEST(Sm90Cost, FurtherTensorsAddDramTraffic) {
  op::GemmSignature description = describe({DType::bf16, DType::bf16, DType::bf16, DType::f32}, {});
  description.epilogue =
      op::make_epilogue("aux", DType::f32, op::acc() + op::full("residual") + op::row("bias"), {{"aux", op::acc()}})
          .value_or_throw();
  description.tensors = {{DType::f32, op::ContiguousMode::columns, 4},
                         {DType::f32, op::ContiguousMode::columns, 4},
                         {DType::bf16, op::ContiguousMode::columns, 8}};
  EXPECT_EQ(beside_bytes(description), 6);
  Sm90CostInput input{.m = 16384, .n = 16384, .k = 64, .tile = {128, 192, 64}, .stages = 4, .fma_per_clock = 4096};
  const arch::ArchLimits& limits = arch::limits(kSm90);
  const double alone = estimate_us(limits, input);
  input.beside_bytes = 6;
  const double bytes_of_tensors = 16384.0 * 16384.0 * 6;
  EXPECT_GT(estimate_us(limits, input) - alone, bytes_of_tensors / limits.dram_bytes_per_s * 1e6);
}

// C is read if the epilogue does, and slowly if its rows allow only short loads or are not those of D.
TEST(Sm90Cost, CountsC) {
  op::GemmSignature description = describe({DType::bf16, DType::bf16, DType::bf16, DType::f32}, {});
  EXPECT_EQ(beside_bytes(description), 2);
  EXPECT_EQ(slow_source_bytes(description), 0);
  op::GemmSignature other = description;
  other.c.alignment = 4;
  EXPECT_EQ(slow_source_bytes(other), 2);
  other = description;
  other.c.layout =
      other.d.layout == op::MatrixLayout::row_major ? op::MatrixLayout::column_major : op::MatrixLayout::row_major;
  EXPECT_EQ(slow_source_bytes(other), 2);
  other.has_c = false;
  EXPECT_EQ(beside_bytes(other), 0);
  EXPECT_EQ(slow_source_bytes(other), 0);
  Sm90CostInput input{.m = 4096, .n = 4096, .k = 64, .tile = {128, 192, 64}, .stages = 4, .fma_per_clock = 4096};
  const arch::ArchLimits& limits = arch::limits(kSm90);
  const double fast = estimate_us(limits, input);
  input.slow_source_bytes = 2;
  EXPECT_GT(estimate_us(limits, input), fast);
}

TEST(Sm90Cost, TheMostStagesAndTheLargestSubtilesAreBest) {
  for (const auto& [m, n, k] : {std::tuple{4096, 4096, 4096}, {16, 28672, 4096}, {1000, 200, 65536}, {64, 64, 64}}) {
    for (const TileShape& tile : {TileShape{64, 16, 128}, {128, 256, 64}, {192, 96, 64}}) {
      for (const Schedule schedule : {Schedule::cooperative, Schedule::ping_pong}) {
        for (const auto& [cluster_m, split_k] : {std::pair{1, 1}, {2, 1}, {1, 4}, {2, 16}}) {
          Sm90CostInput input{.m = m, .n = n, .k = k, .tile = tile, .stages = 16, .cluster_m = cluster_m};
          input.split_k = split_k;
          if (split_k > 1) input.subtiles = 0;
          input.schedule = schedule;
          const double best = estimate_of(input);
          for (const int stages : {3, 6, 16}) {
            for (const int subtiles : {1, 2, 5}) {
              input.stages = stages;
              input.subtiles = subtiles;
              EXPECT_LE(best, estimate_of(input)) << m << " " << tile.m << " " << split_k << " " << stages;
            }
          }
        }
      }
    }
  }
}

TEST(Sm90Cost, GroupsThatDoNotFitAtOnceWait) {
  const Sm90CostInput fits{.m = 64 * 33, .n = 64, .k = 8192, .tile = {64, 64, 64}, .stages = 12, .split_k = 4};
  Sm90CostInput waits = fits;  // 132 SMs have room for 33 groups of 4 CTAs
  waits.m += 64;
  EXPECT_GT(estimate_of(waits), 1.5 * estimate_of(fits) - 6);
}

/// With 8 groups of 512 rows, tiles of 128 x 256 take 4 rounds if the groups are equal, and 4.4 if they are not. If the
/// mean were rounded up to 5 rounds, tiles of 256 x 192 would come first, which took 769 us where torch._grouped_mm,
/// with tiles of 128 x 256, took 695 (H200, 2026-11-24).
TEST(Sm90Cost, OnlyKnownNumbersOfTilesAreRoundedUp) {
  op::GroupedGemm grouped{.gemm = {}, .ends = op::group_ends(9 << 20, 8)};
  grouped.gemm.a = op::matrix(std::uint64_t{1} << 40, DType::bf16, 4096, 14336);
  grouped.gemm.b = op::batched(op::matrix(std::uint64_t{2} << 40, DType::bf16, 14336, 4096), 8);
  grouped.gemm.d = grouped.gemm.c = op::matrix(std::uint64_t{3} << 40, DType::bf16, 4096, 4096);
  const auto first = [&] {
    const op::GemmView view = op::view(grouped);
    return sm90_gemm_designs(view, op::describe(view), kSm90).front().tile;
  };
  EXPECT_EQ(first().m * first().n, 128 * 256) << first().m << 'x' << first().n;
  const std::vector<std::int64_t> sizes(8, 512);
  grouped.expected = op::summarize(op::GroupedMode::ragged_m, sizes);
  EXPECT_EQ(first().m * first().n, 128 * 256) << first().m << 'x' << first().n;
}

TEST(Sm90Cost, ExpectedGroupsChangeTheTileOfPaddedOnes) {
  op::GroupedGemm grouped{.gemm = {}, .mode = op::GroupedMode::masked_m, .ends = op::group_ends(9 << 20, 64)};
  grouped.gemm.a = op::batched(op::matrix(std::uint64_t{1} << 40, DType::bf16, 4096, 7168), 64);
  grouped.gemm.b = op::batched(op::matrix(std::uint64_t{2} << 40, DType::bf16, 7168, 4096), 64);
  grouped.gemm.d = grouped.gemm.c = op::batched(op::matrix(std::uint64_t{3} << 40, DType::bf16, 4096, 4096), 64);
  const auto first = [&] {
    const op::GemmView view = op::view(grouped);
    return sm90_gemm_designs(view, op::describe(view), kSm90).front().tile;
  };
  const int of_capacity = first().m;
  grouped.expected = op::expect_mean(op::GroupedMode::masked_m, 64, 16);
  EXPECT_GE(of_capacity, 128);
  EXPECT_LE(first().m, 64);
}

}  // namespace
}  // namespace tilewright::plan
