// The order in which whole kernels compute the tiles of D, which is the caller's raster order also when the kernel
// computes the transposed problem.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/planted_kernel.hpp"
#include "tests/unit/plan/gemm_cases.hpp"

namespace tilewright::conformance {
namespace {

using Tile = std::pair<std::int64_t, std::int64_t>;

constexpr std::int64_t kTilesM = 4, kTilesN = 7;

/// The first `count` tiles in the order of CUTLASS's swizzle: groups of `width` tile columns are walked row by row;
/// with `along_n`, groups of tile rows are walked column by column.
std::set<Tile> first_tiles(const plan::Raster& raster, std::size_t count) {
  const std::int64_t along = raster.along_n ? kTilesN : kTilesM, across = raster.along_n ? kTilesM : kTilesN;
  const std::int64_t width = raster.width == 8 && across < 6 ? 4 : raster.width;
  std::set<Tile> tiles;
  for (std::int64_t first = 0; first < across; first += width) {
    for (std::int64_t y = 0; y < along; ++y) {
      for (std::int64_t x = first; x < std::min(first + width, across); ++x) {
        if (tiles.size() < count) tiles.insert(raster.along_n ? Tile{x, y} : Tile{y, x});
      }
    }
  }
  return tiles;
}

/// The tiles of D that the kernel computed. D was NaN before.
std::set<Tile> written_tiles(engine::Engine& engine, const registry::KernelPtr& kernel, GuardedProblem& problem,
                             const plan::TileShape& shape) {
  fill_exactly(problem.host());
  problem.upload();
  engine.run(problem.on_device(), kernel);
  problem.download();
  EXPECT_EQ(problem.damage(), "");
  const op::Tensor& d = problem.host().d;
  std::set<Tile> tiles;
  for (std::int64_t m = 0; m < kTilesM; ++m) {
    for (std::int64_t n = 0; n < kTilesN; ++n) {
      const std::int64_t offset = m * shape.m * d.row_stride() + n * shape.n * d.column_stride();
      std::uint16_t bits = 0;
      std::memcpy(&bits, reinterpret_cast<const std::byte*>(d.address) + offset * 2, sizeof(bits));
      if (bits != 0xffff) tiles.insert({m, n});
    }
  }
  return tiles;
}

/// The first CTAs of another kernel.
class FirstCtas final : public registry::Kernel {
 public:
  FirstCtas(const registry::KernelPtr& all, std::uint32_t count) : Kernel(all->metadata()), all_(all), count_(count) {}

 protected:
  Support do_supports(const op::Problem& problem) const override { return all_->supports(problem); }
  compile::Source do_source() const override { return all_->source(); }
  plan::Launch do_launch(const op::Problem& problem) const override {
    plan::Launch launch = all_->launch(problem);
    launch.grid[0] = count_;
    return launch;
  }

 private:
  registry::KernelPtr all_;
  std::uint32_t count_;
};

GuardedProblem problem_of(engine::Engine& engine, const plan::TileShape& tile, op::MatrixLayout d) {
  return {engine.device(),
          plan::problem_of(plan::describe({DType::f16, DType::f16, DType::f16, DType::f32},
                                          {plan::kRow, plan::kColumn, plan::kRow, d}),
                           kTilesM * tile.m, kTilesN * tile.n, 64),
          Placement{}};
}

constexpr plan::Raster kRasters[] = {{1, false}, {1, true}, {2, false}, {4, true}, {8, false}, {8, true}};

template <class Design>
void expect_order_of_ctas(engine::Engine& engine, Design design) {
  for (const op::MatrixLayout layout : {plan::kRow, plan::kColumn}) {
    for (const plan::Raster& raster : kRasters) {
      design.raster = raster;
      GuardedProblem problem = problem_of(engine, design.tile, layout);
      const registry::KernelPtr kernel = engine.make_kernel(op::describe(problem.on_device()), design);
      for (const std::uint32_t count : {1, 2, 3, 5, 11, 17, 28}) {
        const auto first = std::make_shared<FirstCtas>(kernel, count);
        EXPECT_EQ(written_tiles(engine, first, problem, design.tile), first_tiles(raster, count))
            << kernel->name() << ", " << plan::to_string(design) << ", first " << count;
      }
    }
  }
}

TEST(RasterOrder, OfSimtAndSm80IsTheOrderOfCtas) {
  const std::string device = devices().front();
  if (device != "emulator:sm_80") GTEST_SKIP() << "the kernels are those for sm_80";
  engine::Engine& engine = engine_of(device);
  plan::SimtGemmDesign simt;
  simt.target = engine.device()->properties().target;
  simt.tile = {32, 32, 8};
  simt.warps_m = simt.warps_n = 1;
  expect_order_of_ctas(engine, simt);
  plan::Sm80GemmDesign sm80;
  sm80.target = engine.device()->properties().target;
  sm80.tile = {32, 64, 32};
  sm80.warps_m = sm80.warps_n = 1;
  expect_order_of_ctas(engine, sm80);
}

// A persistent CTA that is alone takes all tiles in the raster order. The kernel is changed so that it stops early.
TEST(RasterOrder, OfSm90IsTheOrderOfAPersistentCta) {
  const std::string device = devices().back();
  if (device != "emulator:sm_90a") GTEST_SKIP() << "needs the emulator of Hopper";
  engine::Engine& engine = engine_of(device);
  constexpr std::size_t kCount = 11;
  constexpr Substitution kStops[] = {
      {"scheduler/persistent.cuh", "end_(grid.tiles_m * grid.tiles_n * batches)", "end_(11)"},
      {"scheduler/persistent.cuh", "step_(grid.groups)", "step_(1)"}};
  for (const op::MatrixLayout layout : {plan::kRow, plan::kColumn}) {
    for (const bool swaps_operands : {false, true}) {
      for (const plan::Raster& raster : {plan::Raster{1, false}, {1, true}, {4, false}}) {
        plan::Sm90GemmDesign design;
        design.target = engine.device()->properties().target;
        design.swaps_operands = swaps_operands;
        const bool is_transposed = (layout == plan::kColumn) != swaps_operands;
        design.tile = is_transposed ? plan::TileShape{32, 64, 64} : plan::TileShape{64, 32, 64};
        design.warps_m = is_transposed ? 1 : 4;
        design.warps_n = is_transposed ? 4 : 1;
        design.raster = raster;
        GuardedProblem problem = problem_of(engine, design.tile, layout);
        const auto stopped =
            std::make_shared<PlantedKernel>(engine.make_kernel(op::describe(problem.on_device()), design), kStops);
        const auto kernel = std::make_shared<FirstCtas>(stopped, 1);
        EXPECT_EQ(written_tiles(engine, kernel, problem, design.tile), first_tiles(raster, kCount))
            << plan::to_string(design);
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::conformance
