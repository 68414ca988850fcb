#include "tilewright/lower/cuda/conv_copy.hpp"

#include <array>

#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {
namespace {

using Kind = plan::ConvCopyPlan::Kind;

struct KindNames {
  const char* file;
  const char* type;
};
KindNames names_of(Kind kind) {
  constexpr std::array<KindNames, 3> kNames{
      {{"row_copy", "RowCopy"}, {"filter_blocks", "FilterBlocks"}, {"pixel_blocks", "PixelBlocks"}}};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string unit_type(int unit_bytes) {
  if (unit_bytes <= 8) return fmt::format("tilewright::uint{}_t", 8 * unit_bytes);
  return "tilewright::Vector<tilewright::uint64_t, 2>";
}

}  // namespace

std::string lower(const plan::ConvCopyPlan& plan, std::string_view symbol) {
  const KindNames names = names_of(plan.kind);
  SourceWriter out;
  out.line("#include \"tilewright/permute/{}.cuh\"", names.file);
  out.blank();
  out.line("namespace {}_plan {{", symbol);
  out.line("struct Plan {{").indent();
  if (plan.kind == Kind::filter_blocks) {
    out.line("using Element = {};", unit_type(plan.unit_bytes));
    out.line("static constexpr int kTile = {};", plan::ConvCopyPlan::kFilterTile);
    out.line("static constexpr int kTaps = {};", plan::ConvCopyPlan::kFilterTaps);
  } else {
    if (plan.kind == Kind::pixel_blocks) out.line("using Unit = {};", unit_type(plan.unit_bytes));
    out.line("static constexpr int kUnits = {};", plan.units());
  }
  out.line("static constexpr int kThreads = {};", plan::ConvCopyPlan::kThreads);
  out.dedent().line("}};");
  out.line("using Parameters = tilewright::{}Parameters;", names.type);
  write_parameter_checks(out, plan::parameter_layout(plan));
  out.line("}}");
  out.blank();
  out.line("extern \"C\" __global__ void __launch_bounds__({})", plan::ConvCopyPlan::kThreads);
  out.line("{}(const __grid_constant__ {}_plan::Parameters parameters) {{", symbol, symbol).indent();
  out.line("tilewright::{}<{}_plan::Plan>(parameters).run();", names.type, symbol);
  out.dedent().line("}}");
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
