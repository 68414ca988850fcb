// batch_invariant: the bits of a row of D depend neither on M, nor on the row's place, nor on the batch.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::conformance {
namespace {

using plan::kColumn;
using plan::kRow;

constexpr registry::Promises kRequired{.deterministic = true, .batch_invariant = true};

/// A problem whose M and batch count vary. N and K have tails in every tile.
struct Case {
  std::string name;
  plan::TypeCase types;
  plan::Layouts layouts = {};
  std::int64_t n = 72, k = 200;
  std::string epilogue = {};  // the default is alpha * acc + beta * C
};
std::ostream& operator<<(std::ostream& out, const Case& problem) { return out << problem.name; }

std::vector<Case> cases() {
  using enum DType;
  using enum op::MathOperation;
  return {
      {"f16", {f16, f16, f16, f32}},
      {"f16_column_major", {f16, f16, f32, f32}, {kColumn, kRow, kColumn, kColumn}},
      {"f16_unaligned", {f16, f16, f16, f32}, {kRow, kColumn, kRow, kRow}, 71, 197},
      {"bf16_gelu", {bf16, bf16, bf16, f32}, {kRow, kRow, kRow, kRow}, 72, 200, "D = gelu(alpha * acc + beta * C)"},
      {"f16_in_half", {f16, f16, f16, f16}},
      {"e4m3", {e4m3, e4m3, bf16, f32}, {kRow, kColumn, kRow, kRow}, 80, 272},
      {"e4m3_fast_n_major", {e4m3, e5m2, f32, f32, multiply_add_fast_accumulate}, {kColumn, kRow, kRow, kRow}},
      {"tf32", {f32, f32, f32, f32, multiply_add_tf32}, {kColumn, kColumn, kRow, kRow}},
      {"tf32_n_major", {f32, f32, f32, f32, multiply_add_tf32}, {kRow, kRow, kRow, kColumn}},
      {"fast_f32", {f32, f32, f32, f32, multiply_add_fast_f32}},
      {"f32", {f32, f32, f32, f32}, {kColumn, kColumn, kRow, kColumn}},
      {"f64", {f64, f64, f64, f64}},
      {"s8_to_f32", {s8, s8, f32, s32}},
  };
}

/// Owns the operands of one problem. Row `place` of A and C in matrix `matrix` is always the same, all others differ.
class Rows {
 public:
  Rows(const Case& problem, std::int64_t m, std::int64_t place, std::int64_t batch, std::int64_t matrix)
      : place_(place), matrix_(matrix) {
    gemm.accumulator = problem.types.accumulator;
    gemm.math = problem.types.math;
    gemm.alpha = 1.3;
    gemm.beta = -0.7;
    const DType compute = op::default_compute(problem.types.accumulator, problem.types.d);
    gemm.epilogue = problem.epilogue.empty() ? op::linear_combination(compute)
                                             : op::parse_epilogue(problem.epilogue, compute).value_or_throw();
    gemm.a = tensor(problem.types.a, m, problem.k, problem.layouts.a, batch);
    gemm.b = tensor(problem.types.b, problem.k, problem.n, problem.layouts.b, 1);
    gemm.c = tensor(problem.types.d, m, problem.n, problem.layouts.c, batch);
    gemm.d = tensor(problem.types.d, m, problem.n, problem.layouts.d, batch);
    fill_randomly(gemm.b, 1);
    fill_row_of(gemm.a, 2);
    fill_row_of(gemm.c, 3);
  }

  /// Row `place` of D.
  std::vector<std::byte> bits() const {
    std::vector<std::byte> row;
    for (std::int64_t column = 0; column < gemm.n(); ++column) {
      const std::byte* const element = at(gemm.d, column);
      row.insert(row.end(), element, element + bytes(gemm.d.dtype));
    }
    return row;
  }

  op::Gemm gemm;

 private:
  op::Tensor tensor(DType type, std::int64_t rows, std::int64_t columns, op::MatrixLayout layout, std::int64_t batch) {
    memory_.emplace_back(static_cast<std::size_t>(rows * columns * batch * bytes(type)));
    const op::Tensor one = op::matrix(memory_.back().data(), type, rows, columns, layout);
    return batch == 1 ? one : op::batched(one, batch);
  }
  void fill_row_of(const op::Tensor& tensor, std::uint64_t seed) const {
    fill_randomly(tensor, seed + static_cast<std::uint64_t>(1000 * place_ + 10 * tensor.rows()));
    std::vector<std::byte> row(static_cast<std::size_t>(tensor.columns() * bytes(tensor.dtype)));
    fill_randomly(op::matrix(row.data(), tensor.dtype, 1, tensor.columns()), seed);
    const auto size = static_cast<std::size_t>(bytes(tensor.dtype));
    for (std::int64_t column = 0; column < tensor.columns(); ++column)
      std::memcpy(at(tensor, column), row.data() + static_cast<std::size_t>(column) * size, size);
  }
  std::byte* at(const op::Tensor& tensor, std::int64_t column) const {
    const std::int64_t offset =
        matrix_ * tensor.batch_stride() + place_ * tensor.row_stride() + column * tensor.column_stride();
    return reinterpret_cast<std::byte*>(tensor.address) + offset * bytes(tensor.dtype);
  }

  std::int64_t place_, matrix_;
  std::vector<std::vector<std::byte>> memory_;
};

class BatchInvariance : public testing::TestWithParam<std::tuple<std::string, Case>> {
 protected:
  void SetUp() override {
    if (is_missing(std::get<0>(GetParam()))) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(BatchInvariance, TheBitsOfARowDependOnNothingElse) {
  const auto& [device, problem] = GetParam();
  engine::Engine& engine = engine_of(device);
  std::set<std::string> kernels;
  const auto bits = [&](std::int64_t m, std::int64_t place, std::int64_t batch, std::int64_t matrix) {
    Rows rows(problem, m, place, batch, matrix);
    const auto ranking = engine.ranking(rows.gemm, {}, kRequired);
    kernels.insert(ranking->kernels.empty() ? "none" : ranking->kernels.front().kernel->name());
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
  EXPECT_GT(kernels.size(), 1U) << "all M were computed by one kernel, so this test shows little";
}

std::string name_of(const testing::TestParamInfo<std::tuple<std::string, Case>>& info) {
  return identifier(std::get<0>(info.param) + "_" + std::get<1>(info.param).name);
}
INSTANTIATE_TEST_SUITE_P(Promises, BatchInvariance,
                         testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(cases())), name_of);

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
  const Case problem{"long_k", {DType::f16, DType::f16, DType::f32, DType::f32}, {}, 64, 2048};
  std::set<std::vector<std::byte>> with, without;
  std::set<int> split_k;
  for (const std::int64_t m : {1, 150}) {
    Rows rows(problem, m, m - 1, 1, 0);
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
                         [](const auto& info) { return identifier(info.param); });

}  // namespace
}  // namespace tilewright::conformance
