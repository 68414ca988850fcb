#include "tilewright/plan/signature_checks.hpp"

#include <utility>

namespace tilewright::plan {

Support check_half_products(const op::GemmSignature& signature) {
  const DType a = signature.a.element, b = signature.b.element;
  if ((a != DType::f16 && a != DType::bf16) || b != a)
    return refuse("both operands must be f16 or both bf16, got {} and {}", name(a), name(b)).as(RefusalCode::types);
  if (signature.accumulator != DType::f32)
    return refuse("accumulates in f32, got {}", name(signature.accumulator)).as(RefusalCode::types);
  if (signature.math != op::MathOperation::multiply_add)
    return refuse("multiplies by multiply_add, got {}", op::name(signature.math)).as(RefusalCode::math);
  return {};
}

Support check_row_major_output(const op::GemmSignature& signature) {
  for (const auto& [role, tensor] : {std::pair{"C", &signature.c}, {"D", &signature.d}}) {
    if (tensor->layout != op::MatrixLayout::row_major || tensor->folded_modes != 0 || tensor->is_pointer_array)
      return refuse("{} must be a row-major matrix with one leading dimension", role).as(RefusalCode::strides).of(role);
  }
  if (signature.epilogue.is_gated() || signature.epilogue.columns_per_element() != 1)
    return refuse("pairs no columns, the epilogue does").as(RefusalCode::epilogue);
  return {};
}

Support check_no_reductions(const op::Epilogue& epilogue) {
  for (const op::EpilogueOutput& output : epilogue.outputs) {
    if (output.reduction != op::Reduction::none)
      return refuse("reduces no values, the epilogue's output '{}' does", output.label)
          .as(RefusalCode::epilogue)
          .of(output.label);
  }
  return {};
}

}  // namespace tilewright::plan
