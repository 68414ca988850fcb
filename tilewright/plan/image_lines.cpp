#include "tilewright/plan/image_lines.hpp"

#include <bit>
#include <cmath>
#include <utility>

namespace tilewright::plan::image_lines {
namespace {

/// Elements of one copy, as ImageLines of device/tilewright/conv/image_lines.cuh chooses them.
int copied_elements(const op::OperandView& images) {
  const auto strides =
      static_cast<std::uint64_t>((images.im2col.h.stride | images.im2col.image_stride) * kElementBytes);
  constexpr std::uint64_t kVectorBytes = 16;
  const std::uint64_t bits = images.tensor.address | strides | kVectorBytes;
  return static_cast<int>(bits & (~bits + 1)) / kElementBytes;
}

}  // namespace

Support check_wgrad_signature(const op::GemmSignature& signature) {
  const op::TensorSignature &a = signature.a, &b = signature.b;
  if (a.im2col != op::Im2colAccess::none || b.im2col != op::Im2colAccess::direct ||
      signature.groups != op::GroupedMode::none)
    return refuse("multiplies a gradient by an im2col matrix without divisors").as(RefusalCode::operation);
  if ((a.element != DType::f16 && a.element != DType::bf16) || b.element != a.element)
    return refuse("x and y must be both f16 or both bf16, got {} and {}", name(b.element), name(a.element))
        .as(RefusalCode::types);
  if (signature.accumulator != DType::f32)
    return refuse("accumulates in f32, got {}", name(signature.accumulator)).as(RefusalCode::types);
  if (signature.math != op::MathOperation::multiply_add)
    return refuse("multiplies by multiply_add, got {}", op::name(signature.math)).as(RefusalCode::math);
  if (a.layout != op::MatrixLayout::column_major || a.folded_modes != 0 || a.is_pointer_array)
    return refuse("y must have one stride from pixel to pixel").as(RefusalCode::strides).of("y");
  for (const auto& [role, tensor] : {std::pair{"C", &signature.c}, {"D", &signature.d}}) {
    if (tensor->layout != op::MatrixLayout::row_major || tensor->folded_modes != 0 || tensor->is_pointer_array)
      return refuse("{} must be a row-major matrix with one leading dimension", role).as(RefusalCode::strides).of(role);
  }
  if (signature.epilogue.is_gated() || signature.epilogue.columns_per_element() != 1)
    return refuse("pairs no columns, the epilogue does").as(RefusalCode::epilogue);
  if (!signature.epilogue.outputs.empty()) {
    return refuse("stores no output but D, the epilogue has {} others", signature.epilogue.outputs.size())
        .as(RefusalCode::epilogue);
  }
  return {};
}

double line_copy_clocks(const op::OperandView& images, double elements, int threads, double ctas) {
  constexpr double kInstructions = 14, kIssuesPerClock = 4 * 0.6;
  constexpr double kLoadClocks = 600, kLoadsTogether = 4;  // the latency of L2 under load; the unrolling of the loop
  const int vector = copied_elements(images);
  const double issue = elements / vector / 32 * kInstructions / kIssuesPerClock;
  if (vector > 1) return issue;
  return issue + std::ceil(elements / (threads * kLoadsTogether)) * kLoadClocks / ctas;
}

}  // namespace tilewright::plan::image_lines
