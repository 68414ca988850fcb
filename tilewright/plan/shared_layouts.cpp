#include "tilewright/plan/shared_layouts.hpp"

#include <utility>

#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/plan/program_gemm.hpp"
#include "tilewright/plan/simt_gemm.hpp"
#include "tilewright/plan/sm80_gemm.hpp"
#include "tilewright/plan/sm90/gemm.hpp"

namespace tilewright::plan {
namespace {

bool is_k_major(const op::GemmSignature& operands, bool is_a) {
  return is_a ? operands.a.layout == op::MatrixLayout::row_major : operands.b.layout == op::MatrixLayout::column_major;
}

/// A layout of (mn, k) as one of (line, element of the line).
layout::ComposedLayout lines_of(layout::ComposedLayout smem, bool is_k_major) {
  return is_k_major ? std::move(smem) : layout::select(smem, {1, 0});
}

SharedLayout layout_of(const SimtGemmPlan& plan, bool is_a) {
  const DType element = is_a ? plan.operands.a.element : plan.operands.b.element;
  return {.layout = {layout::Swizzle(), 0, smem_layout(plan, is_a)}, .unit_bits = bits(element)};
}

SharedLayout layout_of(const Sm80GemmPlan& plan, bool is_a) {
  return {.layout = smem_layout(is_a ? plan.a : plan.b), .unit_bits = 8};
}

SharedLayout layout_of(const Sm90GemmPlan& plan, bool is_a) {
  const TmaOperandPlan& operand = is_a ? plan.a : plan.b;
  return {.layout = lines_of(operand.smem, is_k_major(plan.operands, is_a)), .unit_bits = bits(operand.element)};
}

SharedLayout layout_of(const ProgramGemmPlan& plan, bool is_a) {
  const DType element = is_a ? plan.element_a : plan.element_b;
  return {.layout = lines_of(smem_layout(plan, is_a), is_k_major(plan.operands, is_a)), .unit_bits = bits(element)};
}

/// The layouts of both operands, named as the caller names them.
template <class Plan>
std::vector<SharedLayout> layouts_of(const Result<Plan>& plan) {
  if (!plan) return {};
  std::vector<SharedLayout> layouts;
  for (const bool is_a : {true, false}) {
    SharedLayout layout = layout_of(*plan, is_a != plan->is_transposed);
    layout.operand = is_a ? "A" : "B";
    layout.is_k_major = is_k_major(plan->operands, is_a != plan->is_transposed);
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

struct Planner {
  const op::GemmSignature& signature;

  // A design that is spelled without its family has no plan of its own.
  std::vector<SharedLayout> operator()(const FlatDesign& /*design*/) const { return {}; }
  std::vector<SharedLayout> operator()(const SimtGemmDesign& design) const {
    return layouts_of(plan_simt_gemm(signature, design));
  }
  std::vector<SharedLayout> operator()(const Sm80GemmDesign& design) const {
    return layouts_of(plan_sm80_gemm(signature, design));
  }
  std::vector<SharedLayout> operator()(const Sm90GemmDesign& design) const {
    return layouts_of(plan_sm90_gemm(signature, design));
  }
  std::vector<SharedLayout> operator()(const ProgramGemmDesign& design) const {
    return layouts_of(plan_program_gemm(signature, design));
  }
};

}  // namespace

std::vector<SharedLayout> shared_layouts(const op::GemmSignature& signature, const Design& design) {
  return std::visit(Planner{signature}, design);
}

}  // namespace tilewright::plan
