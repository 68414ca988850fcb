// When operands of contractions are copied, and what the kernels that do so say about themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/op/permuted_contraction.hpp"

namespace tilewright::kernels {
namespace {

using testing::HasSubstr;

/// Packed tensors whose first mode has stride 1. Every mode has `extent` elements.
op::Contraction contraction_of(std::string_view expression, std::int64_t extent, DType type) {
  const auto modes = op::parse_contraction(expression).value_or_throw();
  op::Contraction contraction;
  contraction.modes_a = modes[0];
  contraction.modes_b = modes[1];
  contraction.modes_d = modes[2];
  std::uint64_t number = 0;
  for (const auto& [tensor, letters] : {std::pair{&contraction.a, &contraction.modes_a},
                                        {&contraction.b, &contraction.modes_b},
                                        {&contraction.d, &contraction.modes_d}}) {
    tensor->address = ++number << 40;
    tensor->dtype = type;
    std::int64_t stride = 1;
    for (std::size_t i = 0; i < letters->size(); ++i) {
      tensor->shape.append(extent);
      tensor->stride.append(stride);
      stride *= extent;
    }
  }
  return contraction;
}

struct Best {
  registry::KernelPtr kernel;
  double us = registry::kUnknownTime;
};

/// The fastest kernels without and with copies, by their estimates.
std::pair<Best, Best> best_of(const op::Contraction& contraction, const Target& target = plan::kSm90) {
  registry::Discovery found;
  for (const auto& provider : make_providers()) {
    if (provider->runs_on(target)) provider->discover(contraction, target, found);
  }
  std::pair<Best, Best> best;
  for (const registry::KernelPtr& kernel : found.kernels) {
    Best& of = kernel->metadata().permuted.any() ? best.second : best.first;
    const double us = kernel->estimate_us(contraction);
    if (us < of.us) of = {kernel, us};
  }
  return best;
}

std::string refusal_of(const op::Problem& problem) {
  registry::Discovery found;
  make_permuted_gemm_provider()->discover(problem, plan::kSm90, found);
  return found.refused.empty() ? "" : found.refused.front().reason();
}

TEST(PermutedGemm, LargeContractionsWhoseContiguousModesDifferAreCopied) {
  // A is contiguous along m, and B along n, both of K: one of them is loaded element by element without a copy.
  for (const DType type : {DType::bf16, DType::f32}) {
    const auto [direct, copying] = best_of(contraction_of("minj,nlmk->ijkl", 96, type));
    ASSERT_NE(copying.kernel, nullptr);
    EXPECT_LT(copying.us, direct.us) << name(type);
    EXPECT_TRUE(copying.kernel->metadata().permuted.b);
  }
  // mma.sync computes the folded D; wgmma computes the copies.
  const auto [direct, copying] = best_of(contraction_of("imjn,lnkm->ijkl", 96, DType::bf16));
  EXPECT_LT(copying.us, 0.7 * direct.us);
  EXPECT_THAT(copying.kernel->name(), HasSubstr("sm90_gemm"));
}

TEST(PermutedGemm, SmallContractionsAreNot) {
  for (const char* const expression : {"minj,nlmk->ijkl", "imjn,lnkm->ijkl"}) {
    const auto [direct, copying] = best_of(contraction_of(expression, 8, DType::bf16));
    ASSERT_NE(direct.kernel, nullptr);
    EXPECT_LT(direct.us, copying.us) << expression;
  }
}

TEST(PermutedGemm, PlainMatricesAreRefusedWithTheReason) {
  EXPECT_EQ(refusal_of(contraction_of("ik,kj->ij", 512, DType::bf16)),
            "every operand is a matrix or a strided batch, so that no copy helps");
  op::Contraction without_product = contraction_of("minj,nlmk->ijkl", 16, DType::bf16);
  without_product.alpha = 0;
  EXPECT_EQ(refusal_of(without_product), "the call reads neither A nor B");
  EXPECT_EQ(refusal_of(op::Gemm{}), "copies operands of contractions only, but the problem is a gemm");
}

TEST(PermutedGemm, KernelsSayWhatTheyCopy) {
  const op::Contraction contraction = contraction_of("minj,nlmk->ijkl", 96, DType::bf16);
  const registry::KernelPtr kernel = best_of(contraction).second.kernel;
  EXPECT_TRUE(kernel->supports(contraction)) << kernel->supports(contraction).reason();
  EXPECT_TRUE(kernel->name().starts_with("permuted_ab_sm90_gemm_bf16")) << kernel->name();
  const auto json = nlohmann::json::parse(registry::to_json(kernel->metadata()));
  EXPECT_EQ(json["permuted"], "ab");
  EXPECT_EQ(json["family"], "permuted_gemm");
  const std::vector<std::string> remarks = kernel->remarks(contraction);
  ASSERT_EQ(remarks.size(), 3U);
  EXPECT_THAT(remarks[0], HasSubstr("A is copied to K-major order (mn|ij) first: 169869312 bytes, estimated "));
  EXPECT_THAT(remarks[1], HasSubstr("its vectors 1 elements of 2 bytes"));
  EXPECT_THAT(remarks[2], HasSubstr("the product is computed by sm90_gemm_bf16"));

  // The copies are behind the counters of the workspace, and the launches refer to them there.
  const std::size_t bytes = kernel->workspace_bytes(contraction);
  EXPECT_GE(bytes, plan::kWorkspaceCounterBytes + 2 * 169869312);
  EXPECT_LT(bytes, plan::kWorkspaceCounterBytes + 2 * 169869312 + 1024);
  const std::vector<registry::LaunchStep> steps = kernel->launch_steps(contraction, std::uint64_t{1} << 45);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[2].kernel, 0U) << "the GEMM";
  ASSERT_FALSE(steps[2].launch.tensor_maps().empty());
  EXPECT_GE(steps[2].launch.tensor_maps()[0].map.address, (std::uint64_t{1} << 45) + plan::kWorkspaceCounterBytes);
  const std::vector<std::string> suffixes = kernel->symbol_suffixes();
  EXPECT_EQ(suffixes.front(), "");
  for (const std::string& suffix : suffixes) EXPECT_THAT(kernel->source().text, HasSubstr(suffix + "(const"));
}

TEST(PermutedGemm, OtherProblemsAreRefused) {
  const op::Contraction contraction = contraction_of("minj,nlmk->ijkl", 96, DType::bf16);
  const registry::KernelPtr kernel = best_of(contraction).second.kernel;
  EXPECT_TRUE(kernel->supports(contraction_of("minj,nlmk->ijkl", 48, DType::bf16))) << "any extents with these vectors";
  EXPECT_FALSE(kernel->supports(contraction_of("minj,nlmk->ijkl", 95, DType::bf16)));
  op::Contraction misaligned = contraction;
  misaligned.b.address += 2;
  EXPECT_FALSE(kernel->supports(misaligned));
  EXPECT_THAT(make_permuted_gemm_provider()->make(kernel->metadata().signature, kernel->metadata().design).reason(),
              HasSubstr("its kernels are found by discovery only"));
}

}  // namespace
}  // namespace tilewright::kernels
