// The plans of stem_wgrad: the windows and designs of a gradient, the layout of its fragments, the launch, refusals.
#include "tilewright/plan/stem_wgrad.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/conv2d.hpp"

namespace tilewright::plan {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kApart = std::uint64_t{1} << 40;

/// The filter gradient of 7x7 with a stride of 2 and a padding of 3, from 3 channels to 64.
op::Conv2d stem() {
  return {.pass = op::ConvPass::wgrad,
          .x = op::packed_tensor(kApart, DType::bf16, {2, 28, 224, 3}),
          .w = op::packed_tensor(2 * kApart, DType::bf16, {64, 7, 7, 3}),
          .y = op::packed_tensor(3 * kApart, DType::bf16, {2, 14, 112, 64}),
          .c = {},
          .padding = {3, 3},
          .stride = {2, 2}};
}

op::GemmSignature signature_of(const op::Conv2d& conv) { return op::describe(op::view(conv)); }
std::vector<FlatDesign> designs_of(const op::Conv2d& conv) {
  return stem_wgrad_designs(op::view(conv), signature_of(conv), kSm80);
}
StemWgradPlan plan_of(const op::Conv2d& conv, std::size_t number = 0) {
  return plan_stem_wgrad(signature_of(conv), designs_of(conv).at(number)).value_or_throw();
}
std::string reason(const op::Conv2d& conv) { return check_arguments(plan_of(stem()), op::view(conv)).reason(); }

TEST(StemWgrad, HasAWarpForEachRowOfTheWindow) {
  for (std::size_t i = 0; i < designs_of(stem()).size(); ++i) {
    const StemWgradPlan plan = plan_of(stem(), i);
    EXPECT_EQ(plan.row_k, 24);  // 21 elements and one before them, because windows begin at odd elements
    EXPECT_EQ(plan.taps, 7);
    EXPECT_EQ(plan.step, 6);
    EXPECT_EQ(plan.positions, 112);
    EXPECT_EQ(plan.threads(), 32 * 7 * plan.groups);
    EXPECT_EQ(plan.line(), (111 * 6 + 24 + 7 + 7) / 8 * 8);
    EXPECT_LE(plan.filters, 64);
  }
}

TEST(StemWgrad, FragmentsAreSixteenFiltersOfSixteenPositions) {
  const StemWgradPlan plan = plan_of(stem());
  const layout::Layout fragments = gradient_fragments(plan);
  const int line = plan.gradient_line();
  EXPECT_EQ(line, plan.filters * 2 + 16);
  // Lane 8 * i + j addresses row j of matrix i.
  EXPECT_EQ(fragments({3, 0, 0}), 3 * line);
  EXPECT_EQ(fragments({8 + 3, 0, 0}), 3 * line + 16);
  EXPECT_EQ(fragments({16 + 3, 0, 0}), 11 * line);
  EXPECT_EQ(fragments({0, 1, 2}), 32 + 32 * line);
}

TEST(StemWgrad, CtasWaitForEachOther) {
  const op::Conv2d conv = stem();
  const StemWgradPlan plan = plan_of(conv);
  const Launch launched = launch(plan, op::view(conv));
  EXPECT_TRUE(launched.cooperative);
  EXPECT_EQ(launched.grid[0], 2U * 14U / static_cast<unsigned>(plan.rows));  // a CTA for each block of one tile
  EXPECT_EQ(launched.block[0], static_cast<unsigned>(plan.threads()));
  EXPECT_EQ(launched.parameters().size(), parameter_layout(plan).size);
  EXPECT_EQ(launched.workspace_bytes(), kWorkspaceCounterBytes + std::size_t{launched.grid[0]} *
                                                                     static_cast<unsigned>(plan.groups) *
                                                                     static_cast<unsigned>(plan.quads()) * 16);
  op::Conv2d large = conv;  // more blocks than CTAs
  large.x.shape[0] = large.y.shape[0] = 512;
  EXPECT_EQ(launch(plan, op::view(large)).grid[0] % 108U, 0U);
}

TEST(StemWgrad, RefusesOtherGradients) {
  op::Conv2d conv = stem();
  conv.pass = op::ConvPass::fprop;
  EXPECT_TRUE(designs_of(conv).empty());
  conv = stem();
  conv.y.address += 2;
  EXPECT_EQ(reason(conv), "y is aligned to 1 elements, the kernel needs 8");
  conv = stem();
  conv.dilation = {1, 2};
  EXPECT_THAT(reason(conv), HasSubstr("the dilation along the width must be 1, got 2"));
  conv = stem();
  conv.stride = {2, 1};
  EXPECT_THAT(reason(conv), HasSubstr("the code steps 6 elements from one position to the next, got 3"));
  op::GemmSignature signature = signature_of(stem());
  FlatDesign design = designs_of(stem()).front();
  design.stages = 3;
  EXPECT_THAT(plan_stem_wgrad(signature, design).reason(), HasSubstr("stem_wgrad offers a tile"));
  signature.accumulator = DType::f16;
  EXPECT_THAT(plan_stem_wgrad(signature, designs_of(stem()).front()).reason(), HasSubstr("accumulates in f32"));
}

}  // namespace
}  // namespace tilewright::plan
