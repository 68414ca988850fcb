#include "tilewright/plan/signature_checks.hpp"

#include <algorithm>
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

Support check_no_other_outputs(const op::Epilogue& epilogue) {
  if (epilogue.outputs.empty()) return {};
  return refuse("stores no output but D, the epilogue has {} others", epilogue.outputs.size())
      .as(RefusalCode::epilogue);
}

Support check_between(std::string_view what, int value, int least, int most) {
  if (value >= least && value <= most) return {};
  return refuse("{} must be from {} to {}, got {}", what, least, most, value).as(RefusalCode::design);
}

Support check_multiple(std::string_view what, int value, int multiple, int most) {
  if (value >= multiple && value <= most && value % multiple == 0) return {};
  return refuse("{} must be a multiple of {} up to {}, got {}", what, multiple, most, value).as(RefusalCode::design);
}

Support check_registers(std::string_view what, int needed, int threads, const arch::ArchLimits& limits) {
  const int available = std::min(limits.max_registers_per_thread, limits.registers_per_sm / threads);
  if (needed <= available) return {};
  return refuse("{} need about {} registers a thread, of {}", what, needed, available).as(RefusalCode::resources);
}

}  // namespace tilewright::plan
