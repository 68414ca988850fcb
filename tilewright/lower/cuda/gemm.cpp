#include "tilewright/lower/cuda/gemm.hpp"

namespace tilewright::lower::cuda {
namespace {

constexpr std::string_view kOffset = "tilewright::uint32_t";

/// The type in device/tilewright/operand/matrix_layout.cuh.
std::string_view layout_type(op::MatrixLayout layout) {
  switch (layout) {
    case op::MatrixLayout::row_major:
      return "tilewright::RowMajor";
    case op::MatrixLayout::column_major:
      return "tilewright::ColumnMajor";
    case op::MatrixLayout::row_interleaved:
      return "tilewright::RowInterleaved";
    case op::MatrixLayout::column_interleaved:
      return "tilewright::ColumnInterleaved";
  }
  TILEWRIGHT_CHECK(false, "layout {} has no device type", static_cast<int>(layout));
}

/// The type in device/tilewright/scheduler/groups.cuh.
std::string_view groups_type(op::GroupedMode groups) {
  if (groups == op::GroupedMode::none) return "NoGroups";
  return groups == op::GroupedMode::independent ? "IndependentGroups" : "Groups";
}

}  // namespace

std::string matrix_type(const op::TensorSignature& operand) {
  if (operand.folded_modes != 0) return fmt::format("tilewright::FoldedMatrix<{}>", operand.folded_modes);
  switch (operand.im2col) {
    case op::Im2colAccess::none:
      return "tilewright::StridedMatrix";
    case op::Im2colAccess::direct:
      return "tilewright::Im2colMatrix<false>";
    case op::Im2colAccess::divided:
      return "tilewright::Im2colMatrix<true>";
    case op::Im2colAccess::blocks:
      return "tilewright::Im2colMatrix<false, true>";
  }
  TILEWRIGHT_CHECK(false, "im2col access {} has no device type", static_cast<int>(operand.im2col));
}

void write_output_pointers(SourceWriter& out, const op::GemmSignature& operands) {
  out.line("static constexpr bool kCIsPointerArray = {}, kDIsPointerArray = {};", operands.c.is_pointer_array,
           operands.d.is_pointer_array);
}

void write_outputs(SourceWriter& out, const op::GemmSignature& operands) {
  out.line("using ElementC = {};", cuda_name(operands.c.element));
  out.line("using ElementD = {};", cuda_name(operands.d.element));
  out.line("using LayoutC = {};", layout_type(operands.c.layout));
  out.line("using LayoutD = {};", layout_type(operands.d.layout));
  out.line("using MatrixC = {};", matrix_type(operands.c));
  out.line("using MatrixD = {};", matrix_type(operands.d));
  out.line("static constexpr int kAlignmentC = {};", operands.c.alignment);
  out.line("static constexpr int kAlignmentD = {};", operands.d.alignment);
  write_output_pointers(out, operands);
}

std::string tile_scheduler(const plan::GemmTile& tile) {
  const op::GroupedMode groups = tile.groups();
  if (tile.splits_in_turn) return "tilewright::PartsInTurn<Plan>";
  if (tile.split_k > 1) return "tilewright::PersistentTiles<Plan>";
  if (groups == op::GroupedMode::none) return "tilewright::GridTiles<Plan>";
  if (op::ends_along_k(groups)) return fmt::format("tilewright::GridGroupKTiles<Plan, {}>", op::is_ragged(groups));
  if (groups == op::GroupedMode::independent)
    return fmt::format("tilewright::IndependentTiles<Plan, {}>", tile.is_transposed);
  return fmt::format("tilewright::GridGroupTiles<Plan, {}, {}>", op::differs_in_n(groups), op::is_ragged(groups));
}

void write_tile_constants(SourceWriter& out, const plan::GemmTile& tile) {
  write_outputs(out, tile.operands);
  out.line("static constexpr int kTileM = {}, kTileN = {}, kTileK = {};", tile.tile.m, tile.tile.n, tile.tile.k);
  out.line("static constexpr int kWarpsM = {}, kWarpsN = {};", tile.warps_m, tile.warps_n);
  out.line("static constexpr int kStages = {};", tile.stages);
  out.line("using Scheduler = {};", tile_scheduler(tile));
  out.line("using Groups = tilewright::{};", groups_type(tile.groups()));
  out.line("using Raster = tilewright::Raster<{}, {}>;", tile.raster.width, tile.raster.along_n);
  out.line("static constexpr int kSplitK = {}, kReductionCounters = {};", tile.split_k, plan::kReductionCountersFrom);
  out.line("static constexpr bool kSplitsInTurn = {};", tile.splits_in_turn);
  if (tile.split_k == 1) return;
  out.line("static constexpr int kSplitKRows = {}, kCounterBytes = {};", tile.split_k_rows(),
           plan::kWorkspaceCounterBytes);
  out.line("static constexpr int kClusterM = 1, kClusterN = 1;");
  if (!tile.splits_in_turn) return;
  out.line("static constexpr int kTicketCounter = {}, kTurnCounters = {};", plan::kReductionCountersFrom,
           plan::kReductionCountersFrom + sizeof(std::uint32_t));
}

std::vector<std::string> pair_code(const layout::Layout& layout, const std::vector<layout::IndexVariable>& variables) {
  std::vector<std::string> code = layout::coordinate_code(layout, variables, layout::IndexStyle::sums);
  code.resize(2, "0");
  return code;
}

void write_index_function(SourceWriter& out, std::string_view type, std::string_view name,
                          const std::vector<std::string_view>& parameters, std::string_view code) {
  std::string list;
  for (const std::string_view parameter : parameters) {
    const bool is_used = code.find(parameter) != std::string_view::npos;
    list += fmt::format("{}{}int {}", list.empty() ? "" : ", ", is_used ? "" : "[[maybe_unused]] ", parameter);
  }
  out.line("static __device__ constexpr {} {}({}) {{ return {}; }}", type, name, list, code);
}

void write_thread_function(SourceWriter& out, std::string_view type, std::string_view name, std::string_view code) {
  out.line("static __device__ constexpr {} {}(int thread) {{", type, name).indent();
  out.line("[[maybe_unused]] const int lane = thread % 32, warp = thread / 32;");
  out.line("return {};", code);
  out.dedent().line("}}");
}

void write_tile_copy(SourceWriter& out, const plan::TileCopy& copy) {
  constexpr auto kSums = layout::IndexStyle::sums;
  const std::vector<std::string> thread = pair_code(copy.coordinates.mode(0), {"thread"});
  const std::vector<std::string> pass = pair_code(copy.coordinates.mode(1), {"pass"});
  out.line("struct Copy {{  // (thread, pass) -> (line, element): {}", layout::to_string(copy.coordinates)).indent();
  out.line("static constexpr int kPasses = {}, kActiveThreads = {}, kLineStep = {};", copy.passes, copy.active_threads,
           copy.line_step);
  write_index_function(out, "int", "line", {"thread"}, thread[0]);
  write_index_function(out, "int", "element", {"thread"}, thread[1]);
  write_index_function(out, "int", "pass_line", {"pass"}, pass[0]);
  write_index_function(out, "int", "pass_element", {"pass"}, pass[1]);
  out.line("// {}", layout::to_string(copy.smem));
  write_index_function(out, kOffset, "place", {"thread"}, layout::index_code(copy.smem.mode(0), {"thread"}, kSums));
  write_index_function(out, kOffset, "pass_place", {"pass"}, layout::index_code(copy.smem.mode(1), {"pass"}, kSums));
  out.dedent().line("}};");
}

void write_accumulator_tile(SourceWriter& out, const plan::AccumulatorTile& tile) {
  const std::vector<std::string> code = pair_code(tile.coordinates.mode(0), {"lane", "warp"});
  out.line("struct AccumulatorTile {{  // (thread, value) -> coordinate: {}", layout::to_string(tile.coordinates))
      .indent();
  out.line("static constexpr int kLaneRows = {}, kOtherRow = {};", tile.lane_rows, tile.other_row);
  write_thread_function(out, "int", "row", code[0]);
  write_thread_function(out, "int", "column", code[1]);
  out.dedent().line("}};");
}

void write_parameter_checks(SourceWriter& out, const plan::ParameterLayout& layout) {
  for (const plan::ParameterField& field : layout.fields)
    out.line("static_assert(TILEWRIGHT_OFFSET_OF(Parameters, {}) == {});", field.name, field.offset);
  out.line("static_assert(sizeof(Parameters) == {});", layout.size);
}

void write_kernel(SourceWriter& out, const KernelEntry& entry, const plan::ParameterLayout& layout) {
  out.line("using Parameters = {};", entry.parameters);
  write_parameter_checks(out, layout);
  out.blank();
  out.line("extern \"C\" __global__ void {}", entry.attributes);
  out.line("{}(const __grid_constant__ Parameters parameters) {{", entry.symbol).indent();
  out.line("tilewright::{}<Plan, Epilogue>(parameters).run();", entry.family);
  out.dedent().line("}}");
}

void write_tile_kernel(SourceWriter& out, std::string_view family, std::string_view symbol, const plan::GemmTile& tile,
                       int ctas_per_sm) {
  const std::string residence = ctas_per_sm > 0 ? fmt::format(", {}", ctas_per_sm) : "";
  const auto is_strided = [](const op::TensorSignature& operand) {
    return operand.im2col == op::Im2colAccess::none && operand.folded_modes == 0;
  };
  std::string matrices;
  const bool has_strided_outputs = is_strided(tile.operands.c) && is_strided(tile.operands.d);
  if (!is_strided(tile.operands.a) || !is_strided(tile.operands.b) || !has_strided_outputs)
    matrices = ", Plan::OperandA::Matrix, Plan::OperandB::Matrix";
  if (!has_strided_outputs) matrices += ", Plan::MatrixC, Plan::MatrixD";
  const std::string parameters =
      fmt::format("tilewright::GemmParameters<Epilogue::Parameters, Plan::Groups{}>", matrices);
  write_kernel(out,
               {.family = family,
                .symbol = symbol,
                .parameters = parameters,
                .attributes = fmt::format("__launch_bounds__({}{})", tile.threads(), residence)},
               plan::gemm_parameter_layout(tile));
}

}  // namespace tilewright::lower::cuda
