// find_kernels(): the kernels found for a problem, their order, and the refusals.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/engine/ranking.hpp"

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
    EXPECT_EQ(families,
              (std::set<std::string>{"cuda_program", "depthwise_conv", "group_conv", "group_wgrad", "mlir",
                                     "permuted_gemm", "reduce_split_k", "repacked_conv", "simt_gemm", "skinny_gemm",
                                     "sm80_gemm", "sm90_gemm", "stem_conv", "stem_wgrad", "weight_gemm"}));
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

/// A kernel that is ranked and never run.
class Ranked final : public registry::Kernel {
 public:
  Ranked(registry::KernelMetadata metadata, bool compiles_quickly)
      : Kernel(std::move(metadata)), compiles_quickly_(compiles_quickly) {}
  bool compiles_quickly() const override { return compiles_quickly_; }

 protected:
  compile::Source do_source() const override { return {}; }
  plan::Launch do_launch(const op::Problem&) const override { return {}; }

 private:
  bool compiles_quickly_;
};

TEST_F(FindKernels, TheFastestStartIsAKernelThatCompilesQuicklyAndIsHardlySlower) {
  const auto ranked = [&](const std::string& name, double us, bool compiles_quickly) {
    registry::KernelMetadata metadata{name, op::describe(halves_.gemm), plan::Sm80GemmDesign()};
    metadata.name = name;
    return RankedKernel{std::make_shared<Ranked>(std::move(metadata), compiles_quickly), us};
  };
  const auto ranking = [](std::vector<RankedKernel> kernels, std::optional<TunedChoice> tuned = {}) {
    Explanation explanation{.target = kSm90a, .kernels = std::move(kernels), .refused = {}, .tuned = std::move(tuned)};
    put_quick_start_first(explanation);
    return explanation;
  };
  const auto first_of = [](const Explanation& explanation) { return explanation.kernels.front().kernel->name(); };
  const RankedKernel best = ranked("best", 100, false), near = ranked("near", 104, true),
                     far = ranked("far", 106, true);
  EXPECT_EQ(first_of(ranking({best, near, far})), "near");
  EXPECT_EQ(first_of(ranking({best, far})), "best");
  EXPECT_EQ(first_of(ranking({near, best})), "near");
  constexpr double kUnknown = registry::kUnknownTime;
  EXPECT_EQ(first_of(ranking({ranked("slow", kUnknown, false), ranked("quick", kUnknown, true)})), "slow");
  EXPECT_EQ(first_of(ranking({best, near}, TunedChoice{"best", 90.0})), "best");

  Explanation explanation = ranking({best, near, far});
  EXPECT_NE(to_text(explanation).find("near  (compiles in less time than best)"), std::string::npos)
      << to_text(explanation);
  EXPECT_NE(to_json(explanation).find("\"instead_of\": \"best\""), std::string::npos);
  apply([](const registry::KernelMetadata& metadata) { return metadata.name != "near"; }, explanation);
  EXPECT_FALSE(explanation.quick_start);
  EXPECT_EQ(first_of(explanation), "best");
}

#ifdef TILEWRIGHT_HAS_MLIR
TEST_F(FindKernels, AProgramInMlirMayBeTheFastestStart) {
  Options options = emulator_options();
  options.first_use = FirstUse::fastest_start;
  const Engine quick(options);
  const HostProblem large(1024, 2048, 1024,
                          {.type = DType::f16, .d_type = DType::f16, .b = op::MatrixLayout::column_major});
  const Explanation explanation = quick.explain(large.gemm, {}, kSm90a);
  ASSERT_TRUE(explanation.quick_start);
  EXPECT_EQ(explanation.kernels.front().kernel->metadata().family, "mlir");
  EXPECT_EQ(engine_.explain(large.gemm, {}, kSm90a).kernels.front().kernel->name(),
            explanation.quick_start->instead_of);
}
#endif

}  // namespace
}  // namespace tilewright::engine
