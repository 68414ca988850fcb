// Properties of every kernel that find_kernels() returns, over types, layouts, targets and filters; remembered
// rankings; and the list of all kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/unit/engine/host_problem.hpp"
#include "tilewright/engine/engine.hpp"

namespace tilewright::engine {
namespace {

class Discovering : public testing::Test {
 protected:
  Engine engine_{emulator_options()};
};

TEST_F(Discovering, EveryKernelFoundSatisfiesFilterTargetAndSupports) {
  const std::vector<std::pair<DType, DType>> types{{DType::f16, DType::f16},
                                                   {DType::bf16, DType::f32},
                                                   {DType::f32, DType::f32},
                                                   {DType::f64, DType::f64},
                                                   {DType::s8, DType::s32}};
  const std::vector<Target> targets{kSm80, {86}, kSm90a};
  const std::vector<registry::KernelFilter> filters{
      {},
      [](const registry::KernelMetadata& metadata) { return plan::tiling(metadata.design).tile.m >= 128; },
      [](const registry::KernelMetadata& metadata) { return metadata.family != "simt_gemm"; }};
  for (const auto& [type, d_type] : types) {
    for (const std::int64_t n : {64, 61}) {
      for (const op::MatrixLayout b : {op::MatrixLayout::row_major, op::MatrixLayout::column_major}) {
        HostProblem problem(96, n, 40, {.type = type, .d_type = d_type, .b = b});
        for (const Target& target : targets) {
          for (const registry::KernelFilter& filter : filters) {
            std::set<std::string> names;
            for (const RankedKernel& ranked : engine_.find_kernels(problem.gemm, filter, target)) {
              const registry::KernelMetadata& metadata = ranked.kernel->metadata();
              EXPECT_TRUE(!filter || filter(metadata));
              EXPECT_TRUE(target.runs_cubin(plan::tiling(metadata.design).target));
              EXPECT_TRUE(ranked.kernel->supports(problem.gemm)) << ranked.kernel->supports(problem.gemm).reason();
              EXPECT_TRUE(names.insert(ranked.kernel->name()).second) << ranked.kernel->name();
            }
            EXPECT_TRUE(filter || !names.empty());
          }
        }
        EXPECT_TRUE(engine_.find_kernels(problem.gemm, {}, Target{0}).empty());
      }
    }
  }
}

TEST_F(Discovering, RankingsAreRememberedByCallKey) {
  HostProblem problem(64, 64, 64, {.type = DType::f16, .d_type = DType::f16});
  const auto first = engine_.ranking(problem.gemm);
  EXPECT_EQ(engine_.ranking(problem.gemm), first) << "the same object";
  HostProblem other(64, 64, 64, {.type = DType::f16, .d_type = DType::f16});
  EXPECT_EQ(engine_.ranking(other.gemm), first) << "at other addresses";
  problem.gemm.alpha = 2.0;
  const auto scaled = engine_.ranking(problem.gemm);
  EXPECT_NE(scaled, first) << "with alpha = 1 and beta = 0, D is the accumulator: another key";
  problem.gemm.alpha = 3.0;
  EXPECT_EQ(engine_.ranking(problem.gemm), scaled) << "with another alpha";
  problem.gemm.alpha = 0.0;
  EXPECT_NE(engine_.ranking(problem.gemm), first) << "alpha = 0: the product is not read";
  HostProblem padded(64, 64, 64, {.type = DType::f16, .d_type = DType::f16, .padding = 8});
  EXPECT_NE(engine_.ranking(padded.gemm), first);
  EXPECT_NE(engine_.ranking(other.gemm, kSm90a), first);
}

TEST_F(Discovering, RefusalsHaveACodeAndAnOperand) {
  HostProblem odd(33, 17, 19, {.type = DType::f16, .d_type = DType::f16});
  const auto json = nlohmann::json::parse(to_json(engine_.explain(odd.gemm)));
  EXPECT_EQ(json["target"], "sm_80");
  const auto large = std::ranges::find_if(json["refused"], [](const auto& refused) {
    return refused["reason"].template get<std::string>().ends_with(" registers a thread, of 255");
  });
  ASSERT_NE(large, json["refused"].end());
  EXPECT_EQ((*large)["code"], "resources");
  EXPECT_EQ((*large)["numbers"].size(), 4U);
  EXPECT_EQ((*large)["numbers"].back(), 255);
  const auto hopper =
      std::ranges::find_if(json["refused"], [](const auto& refused) { return refused["name"] == "sm90_gemm"; });
  ASSERT_NE(hopper, json["refused"].end());
  EXPECT_EQ((*hopper)["code"], "architecture");
  EXPECT_EQ(json["kernels"].front()["metadata"]["name"], json["kernels"].front()["name"]);
  EXPECT_THAT(to_text(engine_.explain(odd.gemm)), testing::HasSubstr("needs sm_90a, the target is sm_80"));
}

TEST_F(Discovering, CanBeRestrictedToProviders) {
  HostProblem problem(64, 64, 64, {.type = DType::f16, .d_type = DType::f16});
  const std::vector<std::string> simt{"simt_gemm"};
  for (const RankedKernel& ranked : engine_.find_kernels(problem.gemm, {}, {}, simt))
    EXPECT_EQ(ranked.kernel->metadata().family, "simt_gemm");
  const std::vector<std::string> unknown{"none"};
  try {
    engine_.find_kernels(problem.gemm, {}, {}, unknown);
    FAIL() << "found";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(
        error.what(),
        "unknown provider 'none': the registered ones are sm90_gemm, sm80_gemm, skinny_gemm, stem_conv, stem_wgrad, "
        "group_conv, group_wgrad, cuda_program, mlir, permuted_gemm, repacked_conv, simt_gemm, depthwise_conv, "
        "reduce_split_k, weight_gemm");
  }
}

TEST_F(Discovering, TheListingIsAStreamOfUniqueKernels) {
  KernelListing listing = engine_.list_kernels(kSm90a);
  std::set<std::string> names, families;
  int count = 0;
  while (const registry::KernelPtr kernel = listing.next()) {
    if (++count > 4000) break;  // a part of the list is enough
    EXPECT_TRUE(names.insert(kernel->name()).second) << kernel->name();
    EXPECT_EQ(plan::tiling(kernel->metadata().design).target, kSm90a);
    families.insert(kernel->metadata().family);
  }
  EXPECT_GT(count, 4000);
  EXPECT_THAT(families, testing::Contains("sm90_gemm"));
}

TEST_F(Discovering, AListingIsFilteredByPredicate) {
  KernelListing listing = engine_.list_kernels(
      kSm80, [](const registry::KernelMetadata& metadata) { return metadata.operands().a.element == DType::f64; });
  int count = 0;
  std::set<std::string> families;
  while (const registry::KernelPtr kernel = listing.next()) {
    EXPECT_EQ(kernel->metadata().operands().a.element, DType::f64);
    families.insert(kernel->metadata().family);
    ++count;
  }
  EXPECT_GT(count, 20);
  EXPECT_EQ(families, (std::set<std::string>{"simt_gemm", "sm80_gemm"}));
}

TEST_F(Discovering, ProblemsWithoutMemoryArePlanned) {
  HostProblem problem(64, 48, 32, {.type = DType::f16, .d_type = DType::f16});
  op::Gemm shape = problem.gemm;
  for (op::Tensor* tensor : {&shape.a, &shape.b, &shape.c, &shape.d}) {
    tensor->address = 0;
    tensor->device = {op::MemoryDevice::Kind::shape, 0};
  }
  ASSERT_TRUE(op::validate(shape)) << op::validate(shape).reason();
  EXPECT_FALSE(engine_.find_kernels(shape).empty());
  EXPECT_THROW(engine_.run(shape), InvalidArgument);
  shape.a = problem.gemm.a;
  EXPECT_EQ(op::validate(shape).reason(), "A is on host, but D is on shape");
}

}  // namespace
}  // namespace tilewright::engine
