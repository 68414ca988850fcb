// find_kernels(): the kernels found for a problem, their order, and the refusals.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/cache/store.hpp"

namespace tilewright::engine {
namespace {

class FindKernels : public testing::Test {
 protected:
  Engine engine_{emulator_options()};
  HostProblem halves_{256, 192, 128, {.type = DType::f16, .d_type = DType::f16, .b = op::MatrixLayout::column_major}};
  HostProblem floats_{256, 192, 128};
};

TEST_F(FindKernels, RanksByPredictedTime) {
  const std::vector<RankedKernel> ranked = engine_.find_kernels(halves_.gemm);
  ASSERT_GT(ranked.size(), 5U);
  std::set<std::string> families;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    EXPECT_GT(ranked[i].estimate_us, 0.0);
    EXPECT_EQ(ranked[i].estimate_us, ranked[i].kernel->estimate_us(halves_.gemm));
    EXPECT_GE(ranked[i].estimate_us, ranked[i == 0 ? 0 : i - 1].estimate_us);
    EXPECT_TRUE(ranked[i].kernel->supports(halves_.gemm));
    families.insert(ranked[i].kernel->metadata().family);
  }
  EXPECT_EQ(families, (std::set<std::string>{"simt_gemm", "sm80_gemm"}));
  EXPECT_EQ(ranked.front().kernel->metadata().family, "sm80_gemm");
}

TEST_F(FindKernels, IsDeterministic) {
  const std::vector<RankedKernel> first = engine_.find_kernels(halves_.gemm);
  const std::vector<RankedKernel> second = engine_.find_kernels(halves_.gemm);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].kernel->name(), second[i].kernel->name());
}

TEST_F(FindKernels, FilterChoosesByMetadata) {
  const auto only_simt = [](const registry::KernelMetadata& metadata) { return metadata.family == "simt_gemm"; };
  const Explanation explanation = engine_.explain(halves_.gemm, only_simt);
  ASSERT_FALSE(explanation.kernels.empty());
  for (const RankedKernel& ranked : explanation.kernels) EXPECT_EQ(ranked.kernel->metadata().family, "simt_gemm");
  std::size_t rejected = 0;
  for (const registry::RefusedKernel& refused : explanation.refused) {
    rejected += refused.reason() == "rejected by the caller's filter" ? 1U : 0U;
  }
  EXPECT_EQ(rejected + explanation.kernels.size(), engine_.find_kernels(halves_.gemm).size());
  EXPECT_TRUE(engine_.find_kernels(halves_.gemm, [](const auto&) { return false; }).empty());
}

TEST_F(FindKernels, TargetMayDifferFromTheDevice) {
  for (const Target& target : {kSm80, Target{86}, kSm90a}) {
    const std::vector<RankedKernel> ranked = engine_.find_kernels(halves_.gemm, {}, target);
    ASSERT_FALSE(ranked.empty());
    for (const RankedKernel& candidate : ranked)
      EXPECT_EQ(plan::tiling(candidate.kernel->metadata().design).target, target);
  }
  EXPECT_EQ(plan::tiling(engine_.find_kernels(halves_.gemm).front().kernel->metadata().design).target, kSm80);
}

TEST_F(FindKernels, ThrowsForInvalidProblems) {
  floats_.gemm.b.shape[0] = 64;
  EXPECT_THROW(engine_.find_kernels(floats_.gemm), InvalidArgument);
  EXPECT_THROW(engine_.explain(floats_.gemm), InvalidArgument);
}

TEST_F(FindKernels, EmptyProblemsHaveKernelsToo) {
  const HostProblem empty(0, 16, 16);
  EXPECT_FALSE(engine_.find_kernels(empty.gemm).empty());
}

TEST_F(FindKernels, CompilesNothing) {
  engine_.find_kernels(halves_.gemm);
  EXPECT_EQ(engine_.cache().counters(), cache::Counters{});
}

TEST_F(FindKernels, EveryFamilyIsFoundOrExplained) {
  HostProblem odd(33, 17, 19, {.type = DType::f16, .d_type = DType::f16});
  HostProblem bytes_across_k(64, 64, 64, {.type = DType::s8, .d_type = DType::s32});
  for (const op::Gemm* gemm : {&halves_.gemm, &floats_.gemm, &odd.gemm, &bytes_across_k.gemm}) {
    const Explanation explanation = engine_.explain(*gemm);
    std::set<std::string> families;
    for (const RankedKernel& ranked : explanation.kernels) families.insert(ranked.kernel->metadata().family);
    for (const registry::RefusedKernel& refused : explanation.refused) {
      EXPECT_FALSE(refused.reason().empty()) << refused.name;
      families.insert(refused.name.substr(0, refused.name.find(' ')));
    }
    EXPECT_EQ(families, (std::set<std::string>{"cuda_program", "depthwise_conv", "group_conv", "group_wgrad", "mlir",
                                               "permuted_gemm", "reduce_split_k", "repacked_conv", "simt_gemm",
                                               "skinny_gemm", "sm80_gemm", "sm90_gemm", "stem_conv", "stem_wgrad"}));
  }
}

TEST_F(FindKernels, RefusalsCarryTheNumber) {
  const auto reason = [&](const op::Gemm& gemm, const std::string& family) {
    for (const registry::RefusedKernel& refused : engine_.explain(gemm).refused) {
      if (refused.name.starts_with(family)) return refused.reason();
    }
    return std::string("none");
  };
  HostProblem odd(33, 17, 19, {.type = DType::f16, .d_type = DType::f16});
  EXPECT_NE(reason(odd.gemm, "sm80_gemm").find(" registers a thread, of 255"), std::string::npos);
  HostProblem bytes_across_k(64, 64, 64, {.type = DType::s8, .d_type = DType::s32});
  EXPECT_EQ(reason(bytes_across_k.gemm, "sm80_gemm"),
            "B is s8 with stride 1 along n: 8-bit mma.sync takes it along k only");
  EXPECT_NE(reason(floats_.gemm, "sm80_gemm").find("multiply_add_tf32"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::engine
