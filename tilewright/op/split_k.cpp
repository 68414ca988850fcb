#include "tilewright/op/split_k.hpp"

#include <algorithm>
#include <utility>

#include "tilewright/base/rounding.hpp"

namespace tilewright::op {
namespace {

// Elements of which k_part must be a multiple, so that a part of the operand is as aligned as the whole.
std::int64_t granularity(const Tensor& operand, std::int64_t k_stride, MatrixLayout k_major) {
  const TensorSignature signature = describe_operand(OperandView::of(with_longest_lines(operand)), "operand");
  return signature.layout == k_major && k_stride == 1 ? signature.alignment : 1;
}

// `count` matrices of `extent` along K, from `first` on. `along_rows` says whether K is the row mode.
Tensor k_range(const Tensor& operand, bool along_rows, std::int64_t first, std::int64_t extent, std::int64_t count) {
  const std::int64_t step = along_rows ? operand.row_stride() : operand.column_stride();
  Tensor range = operand;
  range.address += static_cast<std::uint64_t>(first * step * bytes(operand.dtype));
  range.shape[along_rows ? 0 : 1] = extent;
  return count == 1 ? range : batched(range, count, extent * step);
}

// Parts are ranges of strided matrices.
Support check_strided(const Gemm& gemm) {
  for (const ConstOperand& operand : operands(gemm)) {
    if (!operand.is_used) continue;
    if (operand.tensor->is_pointer_array()) {
      return refuse("{} is an array of pointers, but split-K in parallel mode needs single matrices",
                    quoted(operand.name))
          .as(RefusalCode::strides)
          .of(operand.name);
    }
    if (operand.tensor->interleaved != InterleavedMode::none) {
      return refuse("{} is interleaved, but split-K in parallel mode needs row-major or column-major matrices",
                    quoted(operand.name))
          .as(RefusalCode::strides)
          .of(operand.name);
    }
  }
  return {};
}

Tensor part_range(const Tensor& parts, std::int64_t first, std::int64_t count) {
  Tensor range = parts;
  range.address += static_cast<std::uint64_t>(first * parts.batch_stride() * bytes(parts.dtype));
  range.shape[0] = count;
  return count == 1 ? slice(range, 0) : range;
}

}  // namespace

KParts split_k(const Gemm& gemm, std::int64_t parts) {
  if (!reads_product(gemm)) return {};
  const std::int64_t k = gemm.k();
  const std::int64_t multiple = std::max(granularity(gemm.a, gemm.a.column_stride(), MatrixLayout::row_major),
                                         granularity(gemm.b, gemm.b.row_stride(), MatrixLayout::column_major));
  const std::int64_t k_part = std::min(k, round_up(ceil_div(k, std::min(parts, k)), multiple));
  const std::int64_t count = ceil_div(k, k_part);
  return {.count = count, .k_part = k_part, .k_last = k - (count - 1) * k_part};
}

Result<SplitK> split_k(const Gemm& gemm, std::int64_t parts, std::uint64_t workspace) {
  if (parts < 1) return refuse("K must be split into at least 1 part, got {}", parts).as(RefusalCode::shape);
  if (const Support strided = check_strided(gemm); !strided) return strided.refusal();
  if (gemm.batch() != 1) {
    return refuse("split-K in parallel mode needs single matrices, got a batch of {}", gemm.batch())
        .as(RefusalCode::shape)
        .of("D");
  }
  Gemm one = slice(gemm, 0);
  const KParts split = split_k(one, parts);
  const DType type = gemm.accumulator;
  const MatrixLayout layout = view_matrix(one.d, "D")->layout;
  const Tensor part = matrix(workspace, type, one.m(), one.n(), layout, 0, one.d.device);
  SplitK result{.gemms = {},
                .reduction = {.parts = batched(part, split.count, one.m() * one.n()),
                              .c = one.c,
                              .d = one.d,
                              .alpha = one.alpha,
                              .beta = one.beta,
                              .accumulator = sum_accumulator(type),
                              .epilogue = std::move(one.epilogue),
                              .tensors = std::move(one.tensors)},
                .k_part = split.k_part};
  const Tensor& partial_sums = result.reduction.parts;
  if (const Support fits = check_modes(partial_sums, "parts"); !fits) return fits.refusal();
  const auto add = [&](std::int64_t first, std::int64_t k, std::int64_t count) {
    result.gemms.push_back({.a = k_range(one.a, false, first * split.k_part, k, count),
                            .b = k_range(one.b, true, first * split.k_part, k, count),
                            .c = {},
                            .d = part_range(partial_sums, first, count),
                            .accumulator = gemm.accumulator,
                            .math = gemm.math,
                            .epilogue = accumulator_alone(default_compute(gemm.accumulator, type))});
  };
  const std::int64_t equal = split.k_last == split.k_part ? split.count : split.count - 1;
  if (equal > 0) add(0, split.k_part, equal);
  if (equal < split.count) add(equal, split.k_last, 1);
  return result;
}

}  // namespace tilewright::op
