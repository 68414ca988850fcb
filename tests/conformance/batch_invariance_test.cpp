// batch_invariant: the bits of a row of D depend neither on M, nor on the row's place, nor on the batch.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/conformance/same_row.hpp"

namespace tilewright::conformance {
namespace {

constexpr registry::Promises kRequired{.deterministic = true, .batch_invariant = true};

class BatchInvariance : public testing::TestWithParam<std::tuple<std::string, RowCase>> {
 protected:
  void SetUp() override {
    if (is_missing(std::get<0>(GetParam()))) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(BatchInvariance, TheBitsOfARowDependOnNothingElse) {
  const auto& [device, problem] = GetParam();
  engine::Engine& engine = engine_of(device);
  const auto bits = [&](std::int64_t m, std::int64_t place, std::int64_t batch, std::int64_t matrix) {
    SameRow rows(problem, m, place, batch, matrix);
    engine.run(rows.gemm, nullptr, nullptr, {}, kRequired);
    return rows.bits();
  };
  const std::vector<std::byte> expected = bits(1, 0, 1, 0);
  for (const std::int64_t m : {2, 7, 16, 33, 64, 100, 129, 192, 257, 384, 700}) {
    EXPECT_EQ(bits(m, m / 2, 1, 0), expected) << "m = " << m;
  }
  EXPECT_EQ(bits(700, 0, 1, 0), expected);
  EXPECT_EQ(bits(700, 699, 1, 0), expected);
  EXPECT_EQ(bits(1, 0, 3, 2), expected);
  EXPECT_EQ(bits(33, 5, 3, 1), expected);
  EXPECT_EQ(bits(129, 128, 5, 4), expected);
  // For extents as small as these, one tile may be ranked first for many M. Other kernels of the ranking have to
  // compute the same bits.
  SameRow rows(problem, 70, 65, 1, 0);
  const std::vector<engine::RankedKernel> ranked = engine.find_kernels(rows.gemm, {}, {}, {}, kRequired);
  ASSERT_GT(ranked.size(), 1U);
  for (const std::size_t rank : {std::size_t{1}, ranked.size() / 2, ranked.size() - 1}) {
    engine.run(rows.gemm, ranked[rank].kernel, nullptr, {}, kRequired);
    EXPECT_EQ(rows.bits(), expected) << ranked[rank].kernel->name();
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<std::string, RowCase>>& info) {
  return identifier(std::get<0>(info.param) + "_" + std::get<1>(info.param).name);
}
INSTANTIATE_TEST_SUITE_P(Promises, BatchInvariance,
                         testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(row_cases())), name_of);

class WithoutThePromise : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (is_missing(GetParam())) GTEST_SKIP() << "no GPU";
  }
};

// Without the requirement, the ranking splits K for few rows, and the bits differ. This shows that the test above can
// fail.
TEST_P(WithoutThePromise, TheBitsDependOnM) {
  engine::Engine& engine = engine_of(GetParam());
  const RowCase problem{"long_k", {DType::f16, DType::f16, DType::f32, DType::f32}, {}, 64, 4096};
  std::set<std::vector<std::byte>> with, without;
  std::set<int> split_k;
  for (const std::int64_t m : {1, 300}) {
    SameRow rows(problem, m, m - 1, 1, 0);
    const registry::KernelPtr best = engine.ranking(rows.gemm, {}, registry::Promises())->kernels.front().kernel;
    split_k.insert(plan::flatten(best->metadata().design, best->metadata().signature.gemm()).split_k);
    engine.run(rows.gemm, nullptr, nullptr, {}, registry::Promises());
    without.insert(rows.bits());
    engine.run(rows.gemm, nullptr, nullptr, {}, kRequired);
    with.insert(rows.bits());
  }
  EXPECT_GT(split_k.size(), 1U) << "the ranking does not split K differently for these M";
  EXPECT_EQ(without.size(), 2U);
  EXPECT_EQ(with.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Promises, WithoutThePromise, testing::ValuesIn(devices()),
                         [](const auto& each) { return identifier(each.param); });

}  // namespace
}  // namespace tilewright::conformance
