#include "tilewright/lower/cuda/sm90_gemm.hpp"

#include <map>

#include "tilewright/layout/index_code.hpp"
#include "tilewright/lower/cuda/epilogue.hpp"
#include "tilewright/lower/cuda/gemm.hpp"
#include "tilewright/lower/cuda/wgmma.hpp"
#include "tilewright/plan/sm90/launch.hpp"
#include "tilewright/plan/sm90/row_classes.hpp"

namespace tilewright::lower::cuda {
namespace {

void write_step(SourceWriter& out, std::string_view prefix, const plan::TmaStep& step) {
  out.line("static constexpr int k{0}Contiguous = {1}, k{0}Strided = {2}, k{0}Bytes = {3};", prefix, step.contiguous,
           step.strided, step.smem_bytes);
}

void write_descriptors(SourceWriter& out, const arch::WgmmaOperand& operand) {
  out.line("// wgmma descriptor: {}", arch::to_string(operand.descriptor));
  out.line("static constexpr tilewright::uint64_t kDescriptor = {:#018x};", arch::encode(operand.descriptor));
  out.line("// (mn, k) instruction -> descriptor offset in 16-byte units: {}", layout::to_string(operand.offset));
  out.line("static __device__ constexpr tilewright::uint32_t descriptor_offset([[maybe_unused]] int mn, int k) {{")
      .indent();
  out.line("return {};", layout::index_code(operand.offset, {"mn", "k"}));
  out.dedent().line("}}");
}

void write_fragments(SourceWriter& out, const arch::FragmentLoads& loads) {
  out.line("static constexpr int kElementBits = {}, kStaggeredThreads = {}, kStaggeredLoads = {};", loads.element_bits,
           loads.staggered_threads, loads.staggered_loads);
  out.line("// (thread, load, mn) -> element offset: {}", layout::to_string(loads.offset));
  out.line("static __device__ constexpr tilewright::uint32_t fragment_offset(int thread, int load,");
  out.line("                                                                 [[maybe_unused]] int mn) {{").indent();
  out.line("return {};", layout::index_code(loads.offset, {"thread", "load", "mn"}));
  out.dedent().line("}}");
  out.line("// k -> element offset: {}", layout::to_string(loads.step));
  out.line("static __device__ constexpr tilewright::uint32_t fragment_step(int k) {{").indent();
  out.line("return {};", layout::index_code(loads.step, {"k"}));
  out.dedent().line("}}");
}

/// Writes the constants that copy/plain_load_operand.cuh reads from the plan.
void write_plain_loads(SourceWriter& out, const plan::TmaOperandPlan& operand) {
  out.line("static constexpr int kMn = {}, kK = {}, kElementBytes = {};", operand.mn, operand.k,
           bytes(operand.element));
  out.line("static constexpr int kAlignmentBytes = {}, kVectorBytes = {}, kRowBytes = {};", operand.alignment_bytes,
           operand.plain_load_bytes, operand.row_bytes());
  out.line("static constexpr bool kRoundsToTf32 = {};", operand.element == DType::tf32);
  out.line("static __device__ constexpr tilewright::uint32_t place(tilewright::uint32_t mn, tilewright::uint32_t k) {{")
      .indent();
  out.line("return {};", layout::index_code(operand.smem, {"mn", "k"}));
  out.dedent().line("}}");
}

std::string source_of(char role, const plan::TmaOperandPlan& operand, int row_classes) {
  if (operand.has_row_classes) {
    return fmt::format("{}<{}>", operand.is_repacked ? "RepackedClasses" : "TmaIm2colClasses", row_classes);
  }
  if (operand.is_im2col) return "TmaIm2col";
  if (operand.is_folded) return "TmaFolded";
  if (operand.is_repacked) return "RepackedMatrix";
  if (operand.is_independent) {
    return fmt::format("TmaIndependentMatrices<{}, {}, {}>", role == 'A', operand.major == arch::Major::k,
                       bits(operand.element) / 8);
  }
  if (operand.ends_along_k) return operand.major == arch::Major::k ? "TmaGroupsAlongK<0>" : "TmaGroupsAlongK<1>";
  if (operand.makes_tensor_maps) return "TmaPointerArray";
  return operand.uses_plain_loads() ? "GlobalMatrix" : "TmaMatrix";
}

/// Writes the constants that copy/repacked_operand.cuh reads from the plan.
void write_repacking(SourceWriter& out, const plan::TmaOperandPlan& operand) {
  out.line("static constexpr int kElementBytes = {}, kAlignmentBytes = {};", bytes(operand.element),
           operand.alignment_bytes);
  out.line("static constexpr bool kTransposes = {};", operand.is_transposed);
}

void write_boxes(SourceWriter& out, const plan::TmaOperandPlan& operand) {
  out.line("static constexpr int kBoxes = {}, kShares = {};", operand.boxes, operand.shares);
  write_step(out, "Box", operand.box);
  write_step(out, "Share", operand.share);
}

void write_operand(SourceWriter& out, char role, const plan::TmaOperandPlan& operand, int row_classes) {
  out.line("struct Operand{} {{  // shared memory, (mn, k) -> element offset: {}", role,
           layout::to_string(operand.smem))
      .indent();
  out.line("using Source = tilewright::{};", source_of(role, operand, row_classes));
  out.line("static constexpr bool kIsKMajor = {}, kIsPointerArray = {};", operand.major == arch::Major::k,
           operand.is_pointer_array);
  out.line("static constexpr int kTileBytes = {};", operand.tile_bytes());
  if (operand.shared_pixels.are_shared() && !operand.shared_pixels.are_columns) {
    out.line("static constexpr int kLoadedTaps = {}, kTapBytes = {};", operand.loaded_taps(), operand.tap_bytes());
  }
  if (operand.is_repacked) write_repacking(out, operand);
  if (operand.uses_plain_loads()) {
    write_plain_loads(out, operand);
  } else {
    write_boxes(out, operand);
  }
  if (operand.fragments) {
    write_fragments(out, *operand.fragments);
  } else {
    write_descriptors(out, operand.wgmma);
  }
  out.dedent().line("}};");
}

std::string groups_type(const plan::Sm90GemmPlan& plan) {
  const op::GroupedMode groups = plan.groups();
  if (plan.has_row_classes()) return fmt::format("RowClasses<{}>", plan.row_classes());
  if (groups == op::GroupedMode::none) return "NoGroups";
  if (groups == op::GroupedMode::independent) return "IndependentGroups";
  return op::ends_along_k(groups) ? "Groups" : "Sm90Groups";
}

std::string scheduler(const plan::Sm90GemmPlan& plan) {
  const op::GroupedMode groups = plan.groups();
  if (plan.has_row_classes()) return "tilewright::ClassTiles<Plan>";
  if (groups == op::GroupedMode::none) return "tilewright::PersistentTiles<Plan>";
  if (op::ends_along_k(groups)) return fmt::format("tilewright::GroupKTiles<Plan, {}>", op::is_ragged(groups));
  if (groups == op::GroupedMode::independent) {
    return fmt::format("tilewright::IndependentTiles<Plan, {}, {}, {}>", plan.is_transposed, plan.cluster_m,
                       plan.cluster_n);
  }
  return fmt::format("tilewright::GroupTiles<Plan, {}, {}>", op::differs_in_n(groups), op::is_ragged(groups));
}

std::string output_type(const plan::Sm90GemmPlan& plan) {
  if (plan.has_row_classes()) return fmt::format("TmaIm2colClasses<{}>", plan.row_classes());
  const plan::SharedPixels& shared = plan.shared_pixels();
  if (plan.has_tap_columns) {
    return fmt::format("TapColumns<{}, {}, {}>", plan.tap_column_block(), shared.taps, shared.step < 0);
  }
  if (shared.are_shared()) return "PixelOutput";
  if (plan.operands.d.folded_modes != 0) return fmt::format("FoldedOutput<{}>", plan.operands.d.folded_modes);
  return plan.stores_by_tma ? "TmaMatrix" : "GlobalMatrix";
}

void write_constants(SourceWriter& out, const plan::Sm90GemmPlan& plan) {
  const op::GemmSignature& operands = plan.operands;
  out.line("using ElementC = {};", cuda_name(operands.c.element));
  out.line("using ElementD = {};", cuda_name(operands.d.element));
  out.line("using Source = tilewright::{};", plan.loads_source_by_tma ? "TmaMatrix" : "GlobalMatrix");
  out.line("using Output = tilewright::{};", output_type(plan));
  out.line("static constexpr bool kCIsRowMajor = {}, kDIsRowMajor = {};", plan.c_is_row_major(), plan.d_is_row_major());
  write_output_pointers(out, operands);
  out.line("static constexpr bool kAccumulatesInHalf = {};", operands.accumulator == DType::f16);
  out.line("static constexpr int kTileM = {}, kTileN = {}, kTileK = {};", plan.tile.m, plan.tile.n, plan.tile.k);
  out.line("static constexpr int kConsumers = {}, kStages = {}, kConsumerArrivals = {};", plan.consumers(), plan.stages,
           plan.consumer_arrivals());
  const plan::SharedPixels& shared = plan.shared_pixels();
  out.line("static constexpr int kSharedTaps = {}, kSharedStep = {};", shared.are_columns ? 1 : shared.taps,
           shared.are_columns ? 0 : shared.step);
  out.line("static constexpr bool kIsPingPong = {};", plan.schedule == plan::Schedule::ping_pong);
  out.line("static constexpr int kClusterM = {}, kClusterN = {};", plan.cluster_m, plan.cluster_n);
  out.line("using Raster = tilewright::Raster<{}, {}>;", plan.raster.width, plan.raster.along_n);
  out.line("using Scheduler = {};", scheduler(plan));
  out.line("using Groups = tilewright::{};", groups_type(plan));
  out.line("static constexpr int kSplitK = {}, kCounterBytes = {}, kReductionCounters = {};", plan.split_k,
           plan::kWorkspaceCounterBytes, plan::kReductionCountersFrom);
  out.line("static constexpr int kProducerRegisters = {}, kConsumerRegisters = {}, kPlainLoadWords = {};",
           plan.producer_registers, plan.consumer_registers, plan.plain_load_words);
  out.line("static constexpr int kPanelColumns = {}, kSubtilePanels = {}, kOutputBuffers = {};",
           plan.subtile.panel_columns, plan.subtile.panels, plan::kOutputBuffers);
  out.line("static constexpr int kTensorMapSlots = {};", plan.tensor_map_slots());
  out.line("static constexpr int kTmaOutputs = {}, kTmaOutputBytes = {};", plan.others.count,
           plan.output_elements().bytes_of_others(plan.subtile.elements()));
  out.line("static constexpr int kSourceBytes = {}, kStoreBytes = {};", plan.source_bytes, plan.store_bytes);
}

/// Writes one struct for each element size of C, D and the further outputs, with the shared-memory layout of a panel.
void write_panels(SourceWriter& out, const plan::Sm90GemmPlan& plan) {
  if (plan.subtile.panel_columns == 0) return;
  std::map<int, std::string> names;
  for (const DType element : plan.panel_elements()) names.emplace(bytes(element), panel_name(element));
  for (const auto& [element_bytes, name] : names) {
    const plan::PanelBoxes boxes = plan::panel_boxes(element_bytes, plan.d_is_row_major(), plan.subtile.panel_columns);
    const layout::ComposedLayout panel =
        plan::panel_layout(element_bytes, plan.d_is_row_major(), plan.subtile.panel_columns);
    out.line("struct {} {{  // shared memory, (row, column) -> byte offset: {}", name, layout::to_string(panel))
        .indent();
    out.line("static constexpr int kLine = {}, kLines = {}, kBoxes = {};", boxes.line, boxes.lines, boxes.boxes);
    out.line("static __device__ constexpr tilewright::uint32_t place(tilewright::uint32_t row,");
    out.line("                                                       tilewright::uint32_t column) {{").indent();
    out.line("return {};", layout::index_code(panel, {"row", "column"}, layout::IndexStyle::sums));
    out.dedent().line("}}").dedent().line("}};");
  }
  out.line("using PanelOfC = {};", names.at(bytes(plan.operands.c.element)));
  out.line("using PanelOfD = {};", names.at(bytes(plan.operands.d.element)));
}

/// Writes the offset and the size in bytes of each part of a CTA's shared memory.
void write_shared_memory(SourceWriter& out, const plan::Sm90SharedMemory& memory) {
  out.line("struct SharedMemory {{").indent();
  out.line("static constexpr int kStageBytes = {};", memory.stage_bytes);
  out.line("static constexpr int kOutputs = {}, kOutputBytes = {};", memory.outputs_at(), memory.output_bytes);
  out.line("static constexpr int kStaging = {}, kStagingBytes = {};", memory.staging_at(), memory.staging_bytes);
  out.line("static constexpr int kOutputBarriers = {}, kOutputBarrierBytes = {};", memory.output_barriers_at(),
           memory.output_barrier_bytes());
  out.line("static constexpr int kRepackingBytes = {};  // per warp", memory.repacking_bytes);
  if (memory.group_bytes > 0) {
    out.line("static constexpr int kGroups = {}, kGroupBytes = {};", memory.groups_at(), memory.group_bytes);
  }
  out.line("static constexpr int kRingBarriers = {}, kTensorMaps = {}, kBytes = {};", memory.ring_barriers_at(),
           memory.tensor_maps == 0 ? memory.groups_end() : memory.tensor_maps_at(), memory.bytes());
  out.dedent().line("}};");
}

void write_mainloop(SourceWriter& out, const plan::Sm90GemmPlan& plan) {
  const std::string_view mainloop = plan.a.fragments ? "RegisterMainloop" : "WarpgroupMainloop";
  out.line("template <int kAtoms>");
  if (plan.promotes_accumulators) {
    out.line("using Mainloop = tilewright::PromotedMainloop<Plan, kAtoms, tilewright::{}<Plan, 1>>;", mainloop);
  } else {
    out.line("using Mainloop = tilewright::{}<Plan, kAtoms>;", mainloop);
  }
}

}  // namespace

std::string lower(const plan::Sm90GemmPlan& plan, std::string_view symbol) {
  SourceWriter out;
  out.line("#include \"tilewright/gemm/sm90_gemm.cuh\"");
  out.line("#include \"tilewright/numeric/functions.cuh\"");
  out.blank();
  out.line("struct Plan {{").indent();
  write_operand(out, 'A', plan.a, plan.row_classes());
  write_operand(out, 'B', plan.b, plan.row_classes());
  write_wgmma(out, *plan.atom, plan.tile.n, plan.a.major, plan.b.major);
  write_constants(out, plan);
  write_accumulator_tile(out, plan::accumulator_tile(plan));
  write_panels(out, plan);
  write_shared_memory(out, plan.shared_memory());
  write_mainloop(out, plan);
  out.dedent().line("}};");
  out.blank();
  write_epilogue(out, plan.operands, std::span(plan.others.numbers).first(static_cast<std::size_t>(plan.others.count)));
  out.blank();
  std::string attributes = fmt::format("__launch_bounds__({}, 1)", plan.threads());
  if (plan.cluster_size() > 1) attributes = fmt::format("__cluster_dims__({}) {}", plan.cluster_size(), attributes);
  write_kernel(out,
               {.family = "Sm90Gemm",
                .symbol = symbol,
                .parameters = "tilewright::Sm90GemmParameters<Plan, Epilogue::Parameters>",
                .attributes = std::move(attributes)},
               plan::parameter_layout(plan));
  return std::move(out).take();
}

}  // namespace tilewright::lower::cuda
