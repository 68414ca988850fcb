#include "tilewright/plan/image_lines.hpp"

#include <bit>
#include <cmath>
#include <utility>

#include "tilewright/plan/signature_checks.hpp"

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
  if (const Support products = check_half_products(signature); !products) return products;
  if (a.layout != op::MatrixLayout::column_major || a.folded_modes != 0 || a.is_pointer_array)
    return refuse("y must have one stride from pixel to pixel").as(RefusalCode::strides).of("y");
  if (const Support output = check_row_major_output(signature); !output) return output;
  if (!signature.epilogue.outputs.empty()) {
    return refuse("stores no output but D, the epilogue has {} others", signature.epilogue.outputs.size())
        .as(RefusalCode::epilogue);
  }
  return {};
}

double line_copy_clocks(const op::OperandView& images, double elements, int threads, double ctas) {
  constexpr double kInstructions = 14, kIssuesPerClock = 4 * 0.6;
  const int vector = copied_elements(images);
  if (vector > 1) return elements / vector / 32 * kInstructions / kIssuesPerClock;
  // Vectors of 8 elements that begin anywhere pass through registers.
  constexpr double kShiftedInstructions = 60;              // of a vector, in SASS
  constexpr double kLoadClocks = 600, kLoadsTogether = 2;  // the latency of L2 under load; the unrolling of the loop
  const double vectors = elements / kVector;
  return vectors / 32 * kShiftedInstructions / kIssuesPerClock +
         std::ceil(vectors / (threads * kLoadsTogether)) * kLoadClocks / ctas;
}

}  // namespace tilewright::plan::image_lines
