// Problems in which one row of A and C stays the same while M, the row's place and the batch change, for tests that
// compare the bits of that row of D.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "tests/conformance/gemm_checks.hpp"
#include "tests/unit/plan/gemm_cases.hpp"
#include "tilewright/op/epilogue_text.hpp"

namespace tilewright::conformance {

/// A problem whose M and batch count vary. N and K have tails in every tile.
struct RowCase {
  std::string name;
  plan::TypeCase types;
  plan::Layouts layouts = {};
  std::int64_t n = 72, k = 200;
  std::string epilogue = {};  // the default is alpha * acc + beta * C
};
inline std::ostream& operator<<(std::ostream& out, const RowCase& problem) { return out << problem.name; }

inline std::vector<RowCase> row_cases() {
  using enum DType;
  using enum op::MathOperation;
  using plan::kColumn;
  using plan::kRow;
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
      // D of one row counts as row-major, so that only the kernels of more rows exchange the operands.
      {"fast_f32_column_major_d",
       {f32, f32, f32, f32, multiply_add_fast_f32},
       {kRow, kRow, kColumn, kColumn},
       72,
       1000},
      {"f32", {f32, f32, f32, f32}, {kColumn, kColumn, kRow, kColumn}},
      {"f64", {f64, f64, f64, f64}},
      {"s8_to_f32", {s8, s8, f32, s32}},
  };
}

/// Owns the operands of one problem. Row `place` of A and C in matrix `matrix` is always the same; the others depend on
/// `place` and M.
class SameRow {
 public:
  SameRow(const RowCase& problem, std::int64_t m, std::int64_t place, std::int64_t batch, std::int64_t matrix)
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
    return batch == 1 ? one : op::batched(one, batch, rows * columns);
  }
  void fill_row_of(const op::Tensor& tensor, std::uint64_t seed) const {
    fill_others(tensor, seed + static_cast<std::uint64_t>(1000 * place_ + 10 * tensor.rows()));
    std::vector<std::byte> row(static_cast<std::size_t>(tensor.columns() * bytes(tensor.dtype)));
    fill_randomly(op::matrix(row.data(), tensor.dtype, 1, tensor.columns()), seed);
    const auto size = static_cast<std::size_t>(bytes(tensor.dtype));
    for (std::int64_t column = 0; column < tensor.columns(); ++column)
      std::memcpy(at(tensor, column), row.data() + static_cast<std::size_t>(column) * size, size);
  }
  /// Repeats as many random numbers as a processor draws in a millisecond, since a test has thousands of problems.
  static void fill_others(const op::Tensor& tensor, std::uint64_t seed) {
    constexpr std::int64_t kDrawn = 40009;  // a prime, so that rows differ
    const std::int64_t size = op::span_bytes(tensor);
    const std::int64_t drawn = std::min(size / bytes(tensor.dtype), kDrawn);
    auto* const first = reinterpret_cast<std::byte*>(tensor.address);
    fill_randomly(op::matrix(first, tensor.dtype, 1, drawn), seed);
    const std::int64_t period = drawn * bytes(tensor.dtype);
    for (std::int64_t at = period; at < size; at += period)
      std::memcpy(first + at, first, static_cast<std::size_t>(std::min(period, size - at)));
  }
  std::byte* at(const op::Tensor& tensor, std::int64_t column) const {
    const std::int64_t offset =
        matrix_ * tensor.batch_stride() + place_ * tensor.row_stride() + column * tensor.column_stride();
    return reinterpret_cast<std::byte*>(tensor.address) + offset * bytes(tensor.dtype);
  }

  std::int64_t place_, matrix_;
  std::vector<std::vector<std::byte>> memory_;
};

}  // namespace tilewright::conformance
