#include "tilewright/op/problem_text.hpp"

#include <fmt/core.h>

#include <array>

#include "tilewright/op/packed.hpp"

namespace tilewright::op {
namespace {

std::string strides_text(const Tensor& tensor) {
  if (tensor.interleaved == InterleavedMode::rows) return fmt::format(":{}", name(MatrixLayout::row_interleaved));
  if (tensor.interleaved == InterleavedMode::columns) return fmt::format(":{}", name(MatrixLayout::column_interleaved));
  return tensor.is_empty() || is_packed(tensor) ? "" : ':' + to_string(tensor.stride);
}

std::string pair_text(std::string_view what, const std::array<std::int64_t, 2>& pair, std::int64_t by_default) {
  return pair[0] == by_default && pair[1] == by_default ? "" : fmt::format(", {} {}x{}", what, pair[0], pair[1]);
}

std::string epilogue_text(const Epilogue& epilogue) {
  return epilogue.name == "linear_combination" ? "" : ", " + epilogue.name;
}

/// The math, the accumulator and the epilogue of a Gemm, a Conv2d or a Contraction whose inputs have type `input`.
template <class Product>
std::string product_text(const Product& product, DType input) {
  std::string text;
  if (product.math != MathOperation::multiply_add) text += fmt::format(", {}", name(product.math));
  if (product.accumulator != default_accumulator(input))
    text += fmt::format(", accumulated in {}", name(product.accumulator));
  return text + epilogue_text(product.epilogue);
}

/// The words after the name of the operation.
std::string variant_text(const Problem& problem) {
  if (const auto* const conv = std::get_if<Conv2d>(&problem)) return fmt::format(" {}", name(conv->pass));
  if (const auto* const grouped = std::get_if<GroupedGemm>(&problem)) return fmt::format(" {}", name(grouped->mode));
  if (const auto* const sums = std::get_if<Contraction>(&problem))
    return fmt::format(" {},{}->{}", sums->modes_a, sums->modes_b, sums->modes_d);
  return {};
}

/// The text behind the operands.
std::string details_text(const Problem& problem) {
  if (const auto* const gemm = std::get_if<Gemm>(&problem)) return product_text(*gemm, gemm->a.dtype);
  if (const auto* const grouped = std::get_if<GroupedGemm>(&problem))
    return product_text(grouped->gemm, grouped->gemm.a.dtype);
  if (const auto* const sums = std::get_if<Contraction>(&problem)) return product_text(*sums, sums->a.dtype);
  if (const auto* const reduction = std::get_if<ReduceSplitK>(&problem)) return epilogue_text(reduction->epilogue);
  const auto* const conv = std::get_if<Conv2d>(&problem);
  if (conv == nullptr) return {};
  const std::string mode = conv->mode == ConvMode::cross_correlation ? "" : fmt::format(", {}", name(conv->mode));
  const std::string groups = conv->groups == 1 ? "" : fmt::format(", {} groups", conv->groups);
  const Tensor& input = conv->pass == ConvPass::fprop ? conv->x : conv->y;
  return pair_text("stride", conv->stride, 1) + pair_text("padding", conv->padding, 0) +
         pair_text("dilation", conv->dilation, 1) + groups + mode + product_text(*conv, input.dtype);
}

}  // namespace

std::string problem_text(const Problem& problem) {
  std::string text = std::string(operation_name(problem)) + variant_text(problem);
  for (const ConstOperand& operand : operands(problem)) {
    if (!operand.is_used) continue;
    const Tensor& tensor = *operand.tensor;
    text += fmt::format(" {}{}{}:{}{}", operand.name, to_string(tensor.shape), strides_text(tensor), name(tensor.dtype),
                        tensor.is_pointer_array() ? "*" : "");
  }
  return text + details_text(problem);
}

}  // namespace tilewright::op
