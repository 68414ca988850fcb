#include "tilewright/lower/cuda/permute.hpp"

#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {

std::string lower(const plan::PermutePlan& plan, std::string_view symbol) {
  SourceWriter out;
  out.line("#include \"tilewright/permute/permute.cuh\"");
  out.blank();
  out.line("namespace {}_plan {{", symbol);
  out.line("struct Plan {{").indent();
  out.line("using Element = tilewright::uint{}_t;", 8 * plan.element_bytes);
  out.line("static constexpr int kCoordinates = {};", plan.coordinates);
  out.line("static constexpr bool kTransposes = {};", plan.transposes);
  out.line("static constexpr int kFromVector = {}, kToVector = {};", plan.from_vector, plan.to_vector);
  out.line("static constexpr int kWarps = {}, kBlocks = {};", plan::PermutePlan::kWarps, plan.blocks);
  out.dedent().line("}};");
  out.line("using Parameters = tilewright::PermuteParameters<Plan::kCoordinates>;");
  write_parameter_checks(out, plan::parameter_layout(plan));
  out.line("}}");
  out.blank();
  out.line("extern \"C\" __global__ void __launch_bounds__({})", plan.threads());
  out.line("{}(const __grid_constant__ {}_plan::Parameters parameters) {{", symbol, symbol).indent();
  out.line("tilewright::Permute<{}_plan::Plan>(parameters).run();", symbol);
  out.dedent().line("}}");
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
