// The experts of a mixture-of-experts layer, forward and backward: D = relu(rows * up[e] + bias[e]) for the rows of
// each expert e, and the gradients of rows and experts. Each product of all experts is one launch.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tilewright/engine/engine.hpp"
#include "tilewright/op/epilogue_text.hpp"

using namespace tilewright;

namespace {

constexpr int kRows = 40, kExperts = 5, kWidth = 24, kInner = 32;

op::Tensor stacked(const std::vector<float>& values, int columns) {
  return op::matrix(values.data(), DType::f32, kRows, columns);
}

op::Tensor of_experts(const std::vector<float>& values, int rows, int columns) {
  return op::batched(op::matrix(values.data(), DType::f32, rows, columns), kExperts);
}

/// Small integers, so that every sum is exact.
std::vector<float> integers(int count, int seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>((i * 7 + seed) % 5 - 2);
  return values;
}

float at(const std::vector<float>& matrix, int row, int columns, int column) {
  return matrix[static_cast<std::size_t>(row * columns + column)];
}

}  // namespace

int main() {
  // Expert e has the rows from ends[e-1] to ends[e]. The router of a layer computes them on the GPU, and the host does
  // not read them. Expert 1 has no rows.
  const std::vector<std::int32_t> ends{7, 7, 20, 21, kRows};
  const op::Tensor ends_of_experts = op::group_ends(reinterpret_cast<std::uint64_t>(ends.data()), kExperts);

  const std::vector<float> rows = integers(kRows * kWidth, 0), up = integers(kExperts * kWidth * kInner, 1),
                           bias = integers(kExperts * kInner, 3), d_hidden = integers(kRows * kInner, 2);
  std::vector<float> hidden(kRows * kInner), before(kRows * kInner), d_before(kRows * kInner), d_rows(kRows * kWidth),
      d_up(kExperts * kWidth * kInner);

  engine::Engine engine;

  op::GroupedGemm forward;  // mode ragged_m: rows of A and D are stacked
  forward.ends = ends_of_experts;
  forward.gemm.a = stacked(rows, kWidth);
  forward.gemm.b = of_experts(up, kWidth, kInner);
  forward.gemm.d = stacked(hidden, kInner);
  forward.gemm.epilogue = op::parse_epilogue("before = acc + row(bias); D = relu(before)", DType::f32).value_or_throw();
  forward.gemm.tensors = {{"bias", of_experts(bias, 1, kInner)}, {"before", stacked(before, kInner)}};
  engine.run(forward);

  for (std::size_t i = 0; i < before.size(); ++i) d_before[i] = before[i] > 0 ? d_hidden[i] : 0;

  op::GroupedGemm of_rows;  // d_rows = d_before * transposed up
  of_rows.ends = ends_of_experts;
  of_rows.gemm.a = stacked(d_before, kInner);
  of_rows.gemm.b = op::transposed(of_experts(up, kWidth, kInner));
  of_rows.gemm.d = stacked(d_rows, kWidth);
  engine.run(of_rows);

  op::GroupedGemm of_up;  // transposed rows * d_before
  of_up.mode = op::GroupedMode::ragged_k;
  of_up.ends = ends_of_experts;
  of_up.gemm.a = op::transposed(stacked(rows, kWidth));
  of_up.gemm.b = stacked(d_before, kInner);
  of_up.gemm.d = of_experts(d_up, kWidth, kInner);
  engine.run(of_up);

  int wrong = 0, first = 0;
  for (int e = 0; e < kExperts; ++e) {
    const int end = ends[static_cast<std::size_t>(e)];
    for (int row = first; row < end; ++row) {
      for (int j = 0; j < kInner; ++j) {
        float sum = at(bias, e, kInner, j);
        for (int i = 0; i < kWidth; ++i) sum += at(rows, row, kWidth, i) * at(up, e * kWidth + i, kInner, j);
        wrong += at(before, row, kInner, j) != sum || at(hidden, row, kInner, j) != (sum > 0 ? sum : 0);
      }
      for (int i = 0; i < kWidth; ++i) {
        float sum = 0;
        for (int j = 0; j < kInner; ++j) sum += at(d_before, row, kInner, j) * at(up, e * kWidth + i, kInner, j);
        wrong += at(d_rows, row, kWidth, i) != sum;
      }
    }
    for (int i = 0; i < kWidth; ++i) {
      for (int j = 0; j < kInner; ++j) {
        float sum = 0;
        for (int row = first; row < end; ++row) sum += at(rows, row, kWidth, i) * at(d_before, row, kInner, j);
        wrong += at(d_up, e * kWidth + i, kInner, j) != sum;
      }
    }
    first = end;
  }
  std::printf("%s: %d experts, %d wrong elements\n", engine.device()->properties().name.c_str(), kExperts, wrong);
  return wrong == 0 ? 0 : 1;
}
