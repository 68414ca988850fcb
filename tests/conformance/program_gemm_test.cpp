// GEMM kernels that are written as programs, in both languages: every mix of atoms on problems with residue tiles, for
// the types, layouts, batches and epilogues that it offers.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <tuple>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/op/expression.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/named_epilogue.hpp"

namespace tilewright::conformance {
namespace {

using plan::AtomMix;
using plan::kColumn;
using plan::kRow;

struct MixCase {
  const char* name;
  AtomMix mix;
  plan::TileShape tile;  // k in bytes
  int stages, warps_m, warps_n;
  int cluster_m = 1, cluster_n = 1;
};
constexpr std::array kMixes{
    MixCase{"TmaWgmma", AtomMix::tma_wgmma, {128, 64, 128}, 3, 8, 1},
    MixCase{"TmaWgmmaOfOneWarpgroup", AtomMix::tma_wgmma, {64, 96, 64}, 4, 4, 1},
    MixCase{"TmaWgmmaOfClustersAlongM", AtomMix::tma_wgmma, {64, 64, 128}, 3, 4, 1, 2, 1},
    MixCase{"TmaWgmmaOfClustersAlongN", AtomMix::tma_wgmma, {64, 64, 64}, 3, 4, 1, 1, 2},
    MixCase{"CpAsyncWgmma", AtomMix::cp_async_wgmma, {128, 64, 128}, 3, 8, 1},
    MixCase{"TmaMma", AtomMix::tma_mma, {64, 64, 128}, 3, 2, 2},
    MixCase{"TmaMmaOfClusters", AtomMix::tma_mma, {64, 64, 128}, 3, 2, 2, 2, 1},
    MixCase{"TmaRegisterWgmma", AtomMix::tma_register_wgmma, {64, 64, 128}, 3, 4, 1},
    MixCase{"TmaRegisterWgmmaOfClusters", AtomMix::tma_register_wgmma, {64, 64, 128}, 3, 4, 1, 1, 2},
};

class ProgramGemm : public testing::TestWithParam<std::tuple<std::string, std::string, MixCase>> {
 protected:
  void SetUp() override {
    if (is_missing(device())) GTEST_SKIP() << "no GPU";
    const Target target = engine().device()->properties().target;
    if (!has_feature(target, TargetFeature::wgmma)) GTEST_SKIP() << "wgmma needs sm_90a";
    for (const registry::ProviderPtr& provider : engine().registry().snapshot()->providers) {
      if (provider->family() == family()) provider_ = provider;
    }
    ASSERT_TRUE(provider_);
    if (const Support available = provider_->runs_on(target); !available) GTEST_SKIP() << available.reason();
  }

  static const std::string& device() { return std::get<0>(GetParam()); }
  static const std::string& family() { return std::get<1>(GetParam()); }
  static const MixCase& mix() { return std::get<2>(GetParam()); }
  static engine::Engine& engine() { return engine_of(device()); }

  /// The kernel of the tested mix for the problem, or the reason why there is none.
  Result<registry::KernelPtr> kernel_for(const op::Gemm& gemm) const {
    const op::GemmSignature signature = op::describe(gemm);
    plan::ProgramGemmDesign design;
    design.target = engine().device()->properties().target;
    design.mix = mix().mix;
    design.tile = {mix().tile.m, mix().tile.n, mix().tile.k / bytes(signature.a.element)};
    design.stages = mix().stages;
    design.warps_m = mix().warps_m;
    design.warps_n = mix().warps_n;
    design.raster = {2, false};
    design.cluster_m = mix().cluster_m;
    design.cluster_n = mix().cluster_n;
    if (plan::computes_transposed(signature)) {
      std::swap(design.tile.m, design.tile.n);
      std::swap(design.warps_m, design.warps_n);
      std::swap(design.cluster_m, design.cluster_n);
    }
    return provider_->make(signature, design);
  }

  void expect_exact_of(const op::Gemm& gemm, const Placement& placement = {.padding = 16}) const {
    GuardedProblem problem(engine().device(), gemm, placement);
    const Result<registry::KernelPtr> kernel = kernel_for(problem.on_device());
    ASSERT_TRUE(kernel) << kernel.reason();
    expect_exact(engine(), *kernel, problem);
    EXPECT_EQ(engine().compile(*kernel)->spill_bytes.value_or(0), 0);
  }
  void expect_within_bound_of(const op::Gemm& gemm) const {
    GuardedProblem problem(engine().device(), gemm, {.padding = 16});
    fill_exactly(problem.host());
    const Result<registry::KernelPtr> kernel = kernel_for(problem.on_device());
    ASSERT_TRUE(kernel) << kernel.reason();
    const op::Comparison comparison = run_once(engine(), *kernel, problem);
    EXPECT_TRUE(comparison.is_within_bound()) << op::to_string(comparison);
  }

  registry::ProviderPtr provider_;
};

op::Gemm problem_of(const plan::TypeCase& types, const plan::Layouts& layouts, std::int64_t m, std::int64_t n,
                    std::int64_t k) {
  op::Gemm gemm = plan::problem_of(plan::describe(types, layouts), m, n, k);
  gemm.alpha = 2.0;
  gemm.beta = -3.0;
  return gemm;
}

constexpr plan::TypeCase kBf16{DType::bf16, DType::bf16, DType::f32, DType::f32};

TEST_P(ProgramGemm, IsExactOnResidueTiles) {
  expect_exact_of(problem_of(kBf16, {}, 136, 200, 400));
  expect_exact_of(problem_of(kBf16, {}, 1, 3, 8));
  expect_exact_of(problem_of(kBf16, {}, 600, 521, 72));
}

TEST_P(ProgramGemm, IsExactInEveryLayout) {
  for (const plan::Layouts& layouts : {plan::Layouts{kRow, kRow, kRow, kColumn}, plan::Layouts{kColumn, kRow},
                                       plan::Layouts{kColumn, kColumn, kColumn, kColumn}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", op::name(layouts.a), op::name(layouts.b), op::name(layouts.d)));
    expect_exact_of(problem_of({DType::f16, DType::f16, DType::f16, DType::f32}, layouts, 72, 136, 136));
  }
}

TEST_P(ProgramGemm, IsExactForOtherTypes) {
  const plan::Layouts k_major{kRow, kColumn, kRow, kRow};
  if (mix().mix != AtomMix::cp_async_wgmma) {
    expect_exact_of(problem_of({DType::f32, DType::f32, DType::f32, DType::f32, op::MathOperation::multiply_add_tf32},
                               k_major, 72, 136, 100));
  }
  if (mix().mix != AtomMix::tma_mma) {
    expect_exact_of(
        problem_of({DType::e4m3, DType::e5m2, DType::f16, DType::f32, op::MathOperation::multiply_add_fast_accumulate},
                   k_major, 72, 136, 272));
  }
}

TEST_P(ProgramGemm, IsExactOnBatches) {
  expect_exact_of(batch_of(problem_of(kBf16, {}, 72, 40, 136), 3));
  expect_exact_of(batch_of(problem_of(kBf16, {}, 72, 40, 136), 3, "B"));
}

TEST_P(ProgramGemm, ComputesEpilogues) {
  op::Gemm gemm = problem_of({DType::f16, DType::f16, DType::f16, DType::f32}, {}, 72, 136, 136);
  gemm.epilogue = op::linear_combination_generic(op::Activation::leaky_relu, DType::f32, 0.25);
  expect_exact_of(gemm);
  gemm.epilogue = op::linear_combination_generic(op::Activation::silu, DType::f32);
  expect_within_bound_of(gemm);
}

// Conversions of single accumulators made ptxas serialise wgmma, which the compiler treats as an error.
TEST_P(ProgramGemm, StoresAccumulatorsToFurtherOutputs) {
  for (const DType d : {DType::f16, DType::f32}) {
    for (const auto layout : {op::MatrixLayout::row_major, op::MatrixLayout::column_major}) {
      for (const std::int64_t n : {std::int64_t{136}, std::int64_t{41}}) {
        op::Gemm gemm = plan::problem_of(plan::describe({DType::f16, DType::f16, d, DType::f32}, {}), 72, n, 136);
        gemm.epilogue = op::make_epilogue("graph", DType::f32, op::acc(), {{"z", op::acc()}}).value_or_throw();
        gemm.tensors = {{"z", op::matrix(std::uint64_t{0}, DType::f16, 72, n, layout)}};
        SCOPED_TRACE(fmt::format("{} {} {}", name(d), op::name(layout), n));
        expect_exact_of(gemm);
      }
    }
  }
}

TEST_P(ProgramGemm, KeepsSpecialValues) {
  GuardedProblem problem(engine().device(), problem_of(kBf16, {}, 72, 40, 136), {.padding = 16});
  fill_exactly(problem.host());
  op::store(problem.host().a, 3, 5, std::numeric_limits<double>::quiet_NaN());
  op::store(problem.host().a, 4, 6, std::numeric_limits<double>::infinity());
  const Result<registry::KernelPtr> kernel = kernel_for(problem.on_device());
  ASSERT_TRUE(kernel) << kernel.reason();
  const op::Comparison comparison = run_once(engine(), *kernel, problem);
  EXPECT_TRUE(comparison.is_within_bound()) << op::to_string(comparison);
}

TEST_P(ProgramGemm, StoresAnAlignedDByTma) {
  const bool is_wgmma = mix().mix != AtomMix::tma_mma;
  for (const DType d : {DType::f32, DType::bf16}) {
    const op::Gemm aligned = problem_of({DType::bf16, DType::bf16, d, DType::f32}, {}, 264, 200, 72);
    const Result<registry::KernelPtr> kernel = kernel_for(aligned);
    ASSERT_TRUE(kernel) << kernel.reason();
    EXPECT_EQ((*kernel)->source().text.find(".bulk_group [") != std::string::npos, is_wgmma);
    EXPECT_EQ((*kernel)->source().text.find("stmatrix") != std::string::npos, is_wgmma && d == DType::bf16);
    expect_exact_of(aligned);
  }
  op::Gemm unaligned = problem_of(kBf16, {}, 72, 41, 136);
  unaligned.alpha = 1.0;
  const Result<registry::KernelPtr> kernel = kernel_for(unaligned);
  ASSERT_TRUE(kernel) << kernel.reason();
  EXPECT_EQ((*kernel)->source().text.find(".bulk_group ["), std::string::npos);
}

TEST_P(ProgramGemm, RefusesWithTheReason) {
  op::Gemm gemm = problem_of(kBf16, {}, 72, 136, 136);
  gemm.epilogue = op::linear_combination_generic(op::Activation::tanh);
  EXPECT_NE(kernel_for(gemm).reason().find("the epilogue has tanh"), std::string::npos);
  const op::Gemm unaligned = problem_of(kBf16, {}, 72, 136, 137);
  EXPECT_NE(kernel_for(unaligned).reason().find("is aligned to 2 bytes, needs 16"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Programs, ProgramGemm,
                         testing::Combine(testing::ValuesIn(devices()), testing::Values("cuda_program", "mlir"),
                                          testing::ValuesIn(kMixes)),
                         [](const auto& tested) {
                           return identifier(std::get<0>(tested.param)) + "_" + std::get<1>(tested.param) + "_" +
                                  std::get<2>(tested.param).name;
                         });

}  // namespace
}  // namespace tilewright::conformance
