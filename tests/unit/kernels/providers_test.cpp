// The providers of the shipped families: the kernels that they offer, and their refusals.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <thread>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/kernels/list.hpp"

namespace tilewright::kernels {
namespace {

using plan::kColumn;
using plan::kRow;
using plan::Layouts;
using plan::TypeCase;

op::Gemm problem(const TypeCase& types, const Layouts& layouts = {}, std::int64_t m = 256, std::int64_t n = 192,
                 std::int64_t k = 128) {
  return plan::problem_of(plan::describe(types, layouts), m, n, k);
}

const TypeCase kF16{DType::f16, DType::f16, DType::f16, DType::f32};
const TypeCase kF32{DType::f32, DType::f32, DType::f32, DType::f32};

registry::Discovery discover_all(const op::Gemm& gemm, const Target& target) {
  registry::Discovery found;
  for (const auto& provider : make_providers()) {
    if (provider->runs_on(target)) provider->discover(gemm, target, found);
  }
  return found;
}

TEST(Providers, AreKnownByTheirFamilies) {
  std::vector<std::string> families;
  for (const auto& provider : make_providers()) families.push_back(provider->family());
  EXPECT_EQ(families,
            (std::vector<std::string>{"sm90_gemm", "sm80_gemm", "skinny_gemm", "stem_conv", "stem_wgrad", "group_conv",
                                      "group_wgrad", "cuda_program", "mlir", "permuted_gemm", "repacked_conv",
                                      "simt_gemm", "depthwise_conv", "reduce_split_k", "weight_gemm"}));
}

TEST(Providers, DiscoveredKernelsSupportTheProblemAndRunOnTheTarget) {
  for (const TypeCase& types : plan::type_cases()) {
    for (const Layouts& layouts : plan::all_layouts()) {
      for (const Target& target : {plan::kSm80, plan::kSm90}) {
        op::Gemm gemm = problem(types, layouts);
        gemm.beta = 1.0;
        const registry::Discovery found = discover_all(gemm, target);
        ASSERT_FALSE(found.kernels.empty()) << plan::to_string(op::describe(gemm));
        std::set<std::string> names;
        for (const registry::KernelPtr& kernel : found.kernels) {
          EXPECT_TRUE(kernel->supports(gemm)) << kernel->supports(gemm).reason();
          EXPECT_EQ(kernel->metadata().operands(), op::describe(gemm));
          EXPECT_EQ(plan::tiling(kernel->metadata().design).target, target);
          EXPECT_TRUE(names.insert(kernel->name()).second) << kernel->name();
          EXPECT_GT(kernel->estimate_us(gemm), 0.0);
          const auto* sm90 = std::get_if<plan::Sm90GemmDesign>(&kernel->metadata().design);
          const bool splits_k = plan::tiling(kernel->metadata().design).split_k > 1;
          EXPECT_EQ(kernel->workspace_bytes(gemm) > 0, splits_k || (sm90 != nullptr && sm90->repacks_operands));
        }
        for (const registry::RefusedKernel& refused : found.refused) {
          EXPECT_FALSE(refused.name.empty());
          EXPECT_FALSE(refused.reason().empty());
        }
      }
    }
  }
}

TEST(Providers, EveryAlignmentIsSupported) {
  for (const TypeCase& types : plan::type_cases()) {
    if (types.math != op::MathOperation::multiply_add) continue;
    op::Gemm gemm = problem(types, {kRow, kRow, kRow, kRow}, 37, 41, 19);
    for (op::Tensor* tensor : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
      tensor->address += static_cast<std::uint64_t>(bytes(tensor->dtype));
    }
    ASSERT_TRUE(op::validate(gemm)) << op::validate(gemm).reason();
    EXPECT_FALSE(discover_all(gemm, plan::kSm80).kernels.empty()) << plan::to_string(op::describe(gemm));
  }
}

TEST(Providers, AFamilyWithoutDesignsIsRefusedOnce) {
  registry::Discovery found;
  make_sm80_gemm_provider()->discover(problem(kF32), plan::kSm90, found);
  EXPECT_TRUE(found.kernels.empty());
  ASSERT_EQ(found.refused.size(), 1U);
  EXPECT_EQ(found.refused.front().name, "sm80_gemm");
  EXPECT_NE(found.refused.front().reason().find("multiply_add_tf32"), std::string::npos)
      << found.refused.front().reason();
}

TEST(Providers, ARefusedDesignIsNamedWithItsReason) {
  registry::Discovery found;
  make_simt_gemm_provider()->discover(
      problem({DType::f32, DType::f32, DType::f32, DType::f32, op::MathOperation::multiply_add_tf32}), plan::kSm80,
      found);
  EXPECT_TRUE(found.kernels.empty());
  ASSERT_FALSE(found.refused.empty());
  EXPECT_EQ(found.refused.front().name.find("simt_gemm sm_80 128x128x16"), 0U) << found.refused.front().name;
  EXPECT_EQ(found.refused.front().reason(), "multiply_add_tf32 needs tensor cores");
}

TEST(Providers, MakeAKernelOfAGivenDesign) {
  const op::GemmSignature description = plan::describe_f16();
  const plan::Sm80GemmDesign design = plan::sm80_design({16, 8, 16});
  const Result<registry::KernelPtr> kernel = make_sm80_gemm_provider()->make(description, design);
  ASSERT_TRUE(kernel) << kernel.reason();
  EXPECT_EQ((*kernel)->metadata(), (registry::KernelMetadata{"sm80_gemm", description, design, {}, 0, {true, true}}));
  EXPECT_EQ(make_simt_gemm_provider()->make(description, design).reason(), "the design is one of sm80_gemm");
  plan::Sm80GemmDesign impossible = design;
  impossible.stages = 12;
  EXPECT_EQ(make_sm80_gemm_provider()->make(description, impossible).reason(),
            "needs 196608 bytes of shared memory, more than the 166912 of a CTA on sm_80");
}

TEST(Providers, AnInvalidSignatureIsRefused) {
  op::GemmSignature description = plan::describe_f16();
  description.b.alignment = 6;
  const plan::Sm80GemmDesign design = plan::sm80_design({16, 8, 16});
  for (const auto& provider : make_providers()) {
    const bool is_of_another = provider->family() == "reduce_split_k" || provider->family() == "weight_gemm";
    EXPECT_EQ(provider->make(description, design).reason(), is_of_another
                                                                ? "computes only " + provider->family() + ", got gemm"
                                                                : "alignment of B must be a power of two, got 6");
  }
}

TEST(Providers, AReductionOfSplitKHasAFamilyOfItsOwn) {
  op::ReduceSplitK reduction;
  reduction.parts = op::batched(op::matrix(std::uint64_t{1} << 40, DType::f32, 256, 192), 4);
  reduction.d = op::matrix(std::uint64_t{2} << 40, DType::f16, 256, 192);
  const auto provider = make_reduce_split_k_provider();
  registry::Discovery found;
  provider->discover(reduction, plan::kSm80, found);
  ASSERT_FALSE(found.kernels.empty());
  for (const registry::KernelPtr& kernel : found.kernels) {
    EXPECT_TRUE(kernel->supports(reduction)) << kernel->supports(reduction).reason();
    EXPECT_EQ(kernel->metadata().signature, op::Signature(op::describe(reduction)));
    const auto made = provider->make(op::describe(reduction), kernel->metadata().design);
    ASSERT_TRUE(made) << made.reason();
    EXPECT_EQ((*made)->name(), kernel->name());
  }
  const registry::KernelPtr kernel = found.kernels.front();
  op::ReduceSplitK other = reduction;
  other.parts.address += 4;
  EXPECT_EQ(kernel->supports(other).reason(), "'parts' is aligned to 1 elements, but the kernel needs 4");
  other = reduction;
  other.d.dtype = DType::bf16;
  EXPECT_EQ(kernel->supports(other).reason(), "D is bf16, but the kernel needs f16");
  other = reduction;
  other.epilogue = op::linear_combination_generic(op::Activation::relu);
  EXPECT_NE(kernel->supports(other).reason().find("but the kernel's is linear_combination"), std::string::npos);
  EXPECT_EQ(kernel->supports(problem(kF16)).reason(), "the kernel computes reduce_split_k, but the problem is a gemm");
  for (const auto& each : make_providers()) {
    if (each->family() == "reduce_split_k" || each->family() == "weight_gemm") continue;
    EXPECT_EQ(each->make(op::describe(reduction), kernel->metadata().design).reason(),
              "computes only GEMMs, but reduce_split_k is not one");
  }
}

// Names and plans are computed on first use, which may be in any thread.
TEST(Providers, KernelsAreSharedBetweenThreads) {
  const op::Gemm gemm = problem(kF16, {}, 300, 200, 64);
  const auto texts = [&](const registry::Discovery& found) {
    std::vector<std::string> all;
    for (const registry::KernelPtr& kernel : found.kernels) {
      const plan::Launch launch = kernel->launch(gemm);
      all.push_back(fmt::format("{} {} {}", kernel->name(), kernel->source().text, launch.dynamic_smem_bytes));
    }
    return all;
  };
  const std::vector<std::string> expected = texts(discover_all(gemm, plan::kSm90));
  const registry::Discovery shared = discover_all(gemm, plan::kSm90);
  std::array<std::vector<std::string>, 4> seen;
  {
    std::vector<std::jthread> threads;
    for (std::vector<std::string>& mine : seen) threads.emplace_back([&] { mine = texts(shared); });
  }
  for (const std::vector<std::string>& each : seen) EXPECT_EQ(each, expected);
}

TEST(Providers, LaunchesCoverTheOutput) {
  const op::Gemm gemm = problem(kF16, {}, 300, 200, 64);
  const op::GemmSignature description = op::describe(gemm);
  const auto kernel = make_sm80_gemm_provider()->make(description, plan::sm80_design({16, 8, 16}));
  ASSERT_TRUE(kernel);
  const plan::Launch launch = (*kernel)->launch(gemm);
  EXPECT_EQ(launch.grid, (std::array<std::uint32_t, 3>{3 * 2, 1, 1}));
  EXPECT_EQ(launch.block, (std::array<std::uint32_t, 3>{128, 1, 1}));
  EXPECT_EQ(launch.dynamic_smem_bytes, 65536U);
}

TEST(Providers, ExtentsBeyondTheGridAreRefused) {
  const op::GemmSignature description = plan::describe_f32({kRow, kRow, kRow, kRow}, 4);
  const auto kernel = make_simt_gemm_provider()->make(description, plan::simt_design());
  ASSERT_TRUE(kernel);
  op::Gemm gemm;
  gemm.a = op::matrix(std::uint64_t{1} << 50, DType::f32, 1, 1);
  gemm.b = op::matrix(std::uint64_t{1} << 51, DType::f32, 1, 2147483647);
  gemm.d = op::matrix(std::uint64_t{1} << 52, DType::f32, 1, 2147483647);
  EXPECT_EQ((*kernel)->supports(gemm).reason(), "n must be at most 2147482623, got 2147483647");
}

}  // namespace
}  // namespace tilewright::kernels
