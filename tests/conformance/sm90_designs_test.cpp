// sm90_gemm with explicit designs, independent of the ranking: every schedule, cluster and split-K, with and without
// swapped operands; on problems with residue tiles, and on problems with more tiles than CTAs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/sm90_design_case.hpp"
#include "tilewright/base/target_features.hpp"

namespace tilewright::conformance {
namespace {

using plan::kColumn;
using plan::kRow;
using plan::Schedule;

struct Shape {
  std::int64_t m, n, k;
};
constexpr Shape kRagged{136, 200, 400};
constexpr Shape kManyTiles{1096, 1032, 200};  // 18 x 17 tiles of 64x64, so that each CTA computes several
constexpr Shape kManyTilesOfSlices{
    584, 520, 200};  // 10 x 9 tiles, more than there are split-K groups of 132 CTAs; few, because emulation is slow

constexpr DesignCase kDesigns[]{
    {"OneWarpgroup", {64, 96}, 1, 3},
    {"TwoWarpgroups", {128, 64}, 2, 4},
    {"ThreeWarpgroups", {192, 64}, 3, 3},
    {"ClusterAlongM", {64, 64}, 1, 4, {2, 1}},
    {"ClusterAlongBoth", {64, 64}, 1, 3, {2, 2}},
    {"ClusterOfFourAlongM", {64, 64}, 1, 3, {4, 1}},
    {"ClusterOfFourAlongN", {128, 32}, 2, 3, {1, 4}},
    {"PingPong", {64, 64}, 2, 3, {1, 1}, Schedule::ping_pong},
    {"PingPongOfTwoAtomsInClusters", {128, 64}, 2, 3, {1, 2}, Schedule::ping_pong},
    {"TwoSlices", {64, 64}, 1, 3, {1, 1}, Schedule::cooperative, false, 2},
    {"FourSlicesOfTwoWarpgroups", {128, 64}, 2, 3, {1, 1}, Schedule::cooperative, false, 4},
    {"FourSlicesOfTwoAtoms", {256, 64}, 2, 3, {1, 1}, Schedule::cooperative, false, 4},
    {"SlicesOfUnevenShares", {64, 16}, 1, 4, {1, 1}, Schedule::cooperative, false, 3},
    {"SlicesAddedInParts", {64, 8}, 1, 4, {1, 1}, Schedule::cooperative, false, 4},
    {"SlicesOfClusters", {64, 64}, 1, 4, {2, 1}, Schedule::cooperative, false, 3},
    {"SlicesThatPingPong", {64, 32}, 2, 3, {1, 1}, Schedule::ping_pong, false, 2},
    {"Swapped", {64, 16}, 1, 6, {1, 1}, Schedule::cooperative, true},
    {"SwappedSlices", {128, 32}, 2, 4, {1, 1}, Schedule::cooperative, true, 2},
    {"SwappedPingPong", {64, 8}, 2, 4, {1, 1}, Schedule::ping_pong, true},
    // Five stages of 8704 bytes, if they were not rounded up to the pattern of the swizzle.
    {"SwappedShortSteps", {128, 8}, 2, 5, {1, 1}, Schedule::cooperative, true, 1, 64},
};

struct OperandCase {
  const char* name;
  plan::TypeCase types;
  plan::Layouts layouts;
};
const std::vector<OperandCase>& operand_cases() {
  using enum DType;
  using enum op::MathOperation;
  static const std::vector<OperandCase> cases{
      {"bf16", {bf16, bf16, bf16, f32}, {}},
      {"f16_along_mn", {f16, f16, f32, f32}, {kColumn, kRow, kRow, kColumn}},
      {"tf32", {f32, f32, f32, f32, multiply_add_tf32}, {}},
      {"s8_to_s8", {s8, s8, s8, s32}, {kRow, kColumn, kRow, kColumn}},
      {"e4m3", {e4m3, e5m2, bf16, f32}, {}},
  };
  return cases;
}

class Sm90Designs : public testing::TestWithParam<std::tuple<std::string, DesignCase>> {
 protected:
  void SetUp() override {
    if (is_missing(device())) GTEST_SKIP() << "no GPU";
    if (!has_feature(engine().device()->properties().target, TargetFeature::wgmma))
      GTEST_SKIP() << "wgmma needs sm_90a";
  }

  static const std::string& device() { return std::get<0>(GetParam()); }
  static const DesignCase& design() { return std::get<1>(GetParam()); }
  static engine::Engine& engine() { return engine_of(device()); }

  static void expect_exact_of(const OperandCase& operands, const Shape& shape, const Placement& placement) {
    op::Gemm gemm = plan::problem_of(plan::describe(operands.types, operands.layouts), shape.m, shape.n, shape.k);
    gemm.alpha = 2.0;
    gemm.beta = -3.0;
    GuardedProblem problem(engine().device(), gemm, placement);
    const op::GemmSignature description = op::describe(problem.on_device());
    const registry::KernelPtr kernel = engine().make_kernel(description, design_of(design(), description));
    SCOPED_TRACE(operands.name);
    expect_exact(engine(), kernel, problem);
  }
};

/// Designs without split-K: with it, the CTAs of these problems have one tile each.
class Sm90DesignsOfWholeTiles : public Sm90Designs {};

std::vector<DesignCase> designs_of_whole_tiles() {
  std::vector<DesignCase> designs;
  std::ranges::copy_if(kDesigns, std::back_inserter(designs), [](const DesignCase& each) { return each.split_k == 1; });
  return designs;
}

TEST_P(Sm90Designs, AreExactForEveryType) {
  for (const OperandCase& operands : operand_cases()) expect_exact_of(operands, kRagged, {});
}

TEST_P(Sm90Designs, AreExactOnManyTiles) {
  expect_exact_of(operand_cases().front(), design().split_k > 1 ? kManyTilesOfSlices : kManyTiles, {});
}

// The steps of a tile divide the stages, so that an operand stays in them from one tile of a CTA to the next: all tiles
// need the same columns, or the CTA begins with others in between.
TEST_P(Sm90DesignsOfWholeTiles, AreExactWhereOperandsStayInTheStages) {
  const auto [rows, columns] = design().tile;
  constexpr int kElementBytes = 2;
  for (const int steps : {1, 2, 3}) {
    if (design().stages % steps != 0) continue;
    for (const auto& [tiles_m, tiles_n] : {std::pair{290, 1}, {100, 3}}) {
      Shape shape{tiles_m * rows + 8, tiles_n * columns - 4, steps * design().k_bytes / kElementBytes};
      if (design().swaps) std::swap(shape.m, shape.n);
      SCOPED_TRACE(fmt::format("{} steps, {} x {} tiles", steps, tiles_m, tiles_n));
      expect_exact_of(operand_cases().front(), shape, {});
    }
  }
}

// The rows of D are not multiples of 16 bytes, so that the epilogue uses plain stores.
TEST_P(Sm90Designs, StoreAnyWidth) { expect_exact_of(operand_cases().front(), {136, 195, 264}, {.padding = 8}); }

const auto name_of_case = [](const auto& tested) {
  return identifier(std::get<0>(tested.param)) + "_" + std::get<1>(tested.param).name;
};
INSTANTIATE_TEST_SUITE_P(Devices, Sm90Designs,
                         testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(kDesigns)), name_of_case);
INSTANTIATE_TEST_SUITE_P(Devices, Sm90DesignsOfWholeTiles,
                         testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(designs_of_whole_tiles())),
                         name_of_case);

}  // namespace
}  // namespace tilewright::conformance
