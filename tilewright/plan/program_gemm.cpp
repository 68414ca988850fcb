#include "tilewright/plan/program_gemm.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "tilewright/base/target_features.hpp"
#include "tilewright/plan/sm90/cost.hpp"

namespace tilewright::plan {
namespace {

constexpr int kLineBytes = 16;  // alignment of operands' lines, which TMA and cp.async of 16 bytes need
constexpr int kWarpsOfGroup = 4;
constexpr int kSharedTileAlignment = 1024;
/// Registers of a consumer thread at most, which setmaxnreg gives.
constexpr int kConsumerRegisters = 232;
/// Threads load the elements of a tensor ahead of their use. With 128 accumulators, both languages spilled 450 to 614
/// bytes of a tile of 128x256 (ptxas 13.0).
constexpr int kAccumulatorsBesideTensor = 127;
/// Bytes of a row with the widest swizzle.
constexpr int kSwizzleRow = 128;
/// Adjacent columns of D that a warp's plain store has.
constexpr int kColumnsOfStore = 8;

bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

Support check_operand(std::string_view role, const op::TensorSignature& operand, bool must_be_aligned) {
  if (operand.is_pointer_array) return refuse("{} is an array of pointers", role).as(RefusalCode::strides).of(role);
  if (operand.im2col != op::Im2colAccess::none)
    return refuse("{} is an im2col matrix", role).as(RefusalCode::strides).of(role);
  if (operand.folded_modes != 0) return refuse("{} is folded", role).as(RefusalCode::strides).of(role);
  if (op::is_interleaved(operand.layout))
    return refuse("{} has an interleaved layout", role).as(RefusalCode::strides).of(role);
  const int alignment = operand.alignment * bytes(operand.element);
  if (must_be_aligned && alignment < kLineBytes)
    return refuse("{} is aligned to {} bytes, needs {}", role, alignment, kLineBytes)
        .as(RefusalCode::alignment)
        .of(role);
  return {};
}

/// The type in which an operand lies in shared memory.
Result<DType> element_in_smem(DType element, op::MathOperation math, AtomMix mix) {
  switch (math) {
    case op::MathOperation::multiply_add:
      if (is_half(element) || element == DType::s8 || element == DType::u8) return element;
      break;
    case op::MathOperation::multiply_add_fast_accumulate:
      if (is_fp8(element)) return element;
      break;
    case op::MathOperation::multiply_add_tf32:
      if (mix == AtomMix::cp_async_wgmma) return refuse("cp.async does not round f32 to tf32").as(RefusalCode::types);
      return DType::tf32;
    default:
      break;
  }
  return refuse("programs do not compute {} of {}", op::name(math), name(element)).as(RefusalCode::types);
}

Support choose_atom(ProgramGemmPlan& plan) {
  const DType accumulator = plan.operands.accumulator;
  if (accumulator != DType::f32 && accumulator != DType::s32)
    return refuse("accumulators of programs are f32 or s32, got {}", name(accumulator)).as(RefusalCode::types);
  if (plan.mix == AtomMix::tma_mma) {
    const int k = 8 * 2 * kLineBytes / bits(plan.element_a);
    plan.mma = arch::find_mma_atom(16, 8, k, plan.element_a, plan.element_b, accumulator);
    if (plan.mma != nullptr && plan.target.has_features_of(plan.mma->min_target) && !is_fp8(plan.element_a)) return {};
    return refuse("no m16n8k{} of {} and {} with {} accumulators for ldmatrix", k, name(plan.element_a),
                  name(plan.element_b), name(accumulator))
        .as(RefusalCode::types);
  }
  const bool in_registers = plan.mix == AtomMix::tma_register_wgmma;
  plan.wgmma =
      arch::find_wgmma_atom(plan.element_a, plan.element_b, accumulator,
                            in_registers ? arch::OperandSource::registers : arch::OperandSource::shared_memory);
  if (plan.wgmma != nullptr) return {};
  return refuse("wgmma has no {} and {} with {} accumulators; there is: {}", name(plan.element_a), name(plan.element_b),
                name(accumulator), arch::known_wgmma(plan.element_a, plan.element_b))
      .as(RefusalCode::types);
}

/// Refuses MN-major operands that the mix cannot read: ldmatrix transposes, and wgmma reads, 16-bit elements only.
Support check_majors(const ProgramGemmPlan& plan) {
  const auto check = [](char role, arch::Major major, DType element) -> Support {
    if (major == arch::Major::k || bits(element) == 16) return {};
    return refuse("{} is {} with {}, only 16-bit elements may be", role, arch::name(major), name(element))
        .as(RefusalCode::strides)
        .of(role);
  };
  if (const Support fits = check('A', plan.major_a, plan.element_a); !fits) return fits;
  return check('B', plan.major_b, plan.element_b);
}

/// Whether the epilogue reads an element of C, or of another tensor of D's size, for each of D.
bool reads_full_tensor(const op::GemmSignature& operands) {
  return (operands.has_c && operands.epilogue.reads_source()) ||
         std::ranges::any_of(operands.epilogue.tensors(),
                             [](const op::EpilogueNode* tensor) { return tensor->broadcast == op::kFull; });
}

/// The accumulators of a thread. The warps have equal parts of the tile.
template <class Tiled>
int accumulators_of(const Tiled& tiled) {
  return tiled.tile.m * tiled.tile.n / (32 * tiled.warps_m * tiled.warps_n);
}

Support check_tile(const ProgramGemmPlan& plan) {
  const auto [m, n, k] = plan.tile;
  if (plan.warps_m * plan.warps_n % kWarpsOfGroup != 0 || plan.consumers() > 3) {
    return refuse("multiplying warps form 1 to 3 warpgroups of 4, got {} x {} warps", plan.warps_m, plan.warps_n)
        .as(RefusalCode::design);
  }
  if (plan.wgmma != nullptr) {
    if (plan.warps_n != 1 || m % (16 * plan.warps_m) != 0) {
      return refuse("warpgroups lie along m and take 64 rows each, got {} x {} warps for {} rows", plan.warps_m,
                    plan.warps_n, m)
          .as(RefusalCode::design);
    }
    if (const Support has = arch::supports_n(*plan.wgmma, n); !has) return has;
  } else {
    if (m % (16 * plan.warps_m) != 0 || n % (16 * plan.warps_n) != 0) {
      return refuse("warps take multiples of 16x16, got a tile of {}x{} for {}x{} warps", m, n, plan.warps_m,
                    plan.warps_n)
          .as(RefusalCode::design);
    }
  }
  const int accumulators = accumulators_of(plan);
  if (accumulators > kConsumerRegisters - 72)
    return refuse("a thread would have {} accumulators, at most {} fit", accumulators, kConsumerRegisters - 72)
        .as(RefusalCode::resources);
  if (reads_full_tensor(plan.operands) && accumulators > kAccumulatorsBesideTensor) {
    return refuse(
               "a thread would have {} accumulators, at most {} fit beside the elements of C or of a tensor of D's "
               "size",
               accumulators, kAccumulatorsBesideTensor)
        .as(RefusalCode::resources);
  }
  for (const auto& [mn, element] : {std::pair(m, plan.element_a), std::pair(n, plan.element_b)}) {
    if (mn * k * bits(element) / 8 % kSharedTileAlignment != 0)
      return refuse("a tile of {}x{} {} is no multiple of {} bytes", mn, k, name(element), kSharedTileAlignment)
          .as(RefusalCode::design);
  }
  return check_smem(plan.smem_bytes(), plan.target);
}

/// Refuses clusters but those of two CTAs that load by TMA.
Support check_cluster(const ProgramGemmPlan& plan) {
  const auto [m, n] = std::pair(plan.cluster_m, plan.cluster_n);
  if (m < 1 || n < 1 || m * n > 2) return refuse("a cluster has 1 or 2 CTAs, got {}x{}", m, n).as(RefusalCode::design);
  if (m * n == 2 && plan.mix == AtomMix::cp_async_wgmma)
    return refuse("cp.async has no multicast, got a cluster of {}x{}", m, n).as(RefusalCode::design);
  // Each CTA loads half of the shared tile: whole groups of 8 lines.
  constexpr int kLines = 16;
  if (m == 2 && plan.tile.n % kLines != 0)
    return refuse("two CTAs load multiples of 8 columns of B each, got a tile of {}", plan.tile.n)
        .as(RefusalCode::design);
  return {};
}

/// Lets TMA store D through shared memory, if D's lines begin at multiples of 16 bytes and there is room for at least
/// two panels of each warpgroup.
void choose_output(ProgramGemmPlan& plan) {
  const op::TensorSignature& d = plan.operands.d;
  if (plan.wgmma == nullptr || d.alignment * bytes(d.element) < kLineBytes) return;
  const int columns = std::gcd(plan.tile.n, kSwizzleRow / bytes(d.element));
  const int left = arch::limits(plan.target).smem_per_block_bytes - plan.smem_bytes();
  const int panel_bytes = 64 * columns * bytes(d.element);
  if (panel_bytes % kSharedTileAlignment != 0) return;
  plan.panel_columns = columns;
  const int panels = plan.panels_m() * plan.panels_n();
  // A number that divides the panels, so that each panel always has the same buffer; two where there is none.
  int buffers = std::min(panels, left / (plan.consumers() * panel_bytes));
  while (buffers > 1 && panels % buffers != 0) --buffers;
  if (buffers < 2) buffers = left >= 2 * plan.consumers() * panel_bytes ? 2 : 0;
  plan.output_buffers = buffers;
  if (buffers == 0) plan.panel_columns = 0;
}

Support check_output(const op::GemmSignature& operands) {
  for (const auto& [role, tensor] : {std::pair("C", &operands.c), std::pair("D", &operands.d)}) {
    if (const Support fits = check_operand(role, *tensor, false); !fits) return fits;
    if (tensor->element != DType::f32 && !is_half(tensor->element))
      return refuse("{} is {}, programs have f32, f16 and bf16", role, name(tensor->element))
          .as(RefusalCode::types)
          .of(role);
  }
  for (const op::EpilogueTensorSignature& tensor : operands.tensors) {
    if (tensor.element != DType::f32 && !is_half(tensor.element))
      return refuse("a tensor of the epilogue is {}, programs have f32, f16 and bf16", name(tensor.element))
          .as(RefusalCode::epilogue);
  }
  return {};
}

}  // namespace

Support check_functions(const op::Epilogue& epilogue) {
  if (epilogue.compute != DType::f32)
    return refuse("the epilogue computes in {}, programs in f32", name(epilogue.compute)).as(RefusalCode::epilogue);
  if (epilogue.is_gated()) return refuse("the epilogue pairs columns").as(RefusalCode::epilogue);
  for (const op::EpilogueOutput& output : epilogue.outputs) {
    if (output.reduction != op::Reduction::none)
      return refuse("the epilogue reduces {}", output.label).as(RefusalCode::epilogue);
  }
  for (const op::EpilogueNode& node : epilogue.nodes) {
    switch (node.op) {
      case op::EpilogueOp::power:
      case op::EpilogueOp::exp:
      case op::EpilogueOp::log:
      case op::EpilogueOp::log1p:
      case op::EpilogueOp::erf:
      case op::EpilogueOp::tanh:
      case op::EpilogueOp::convert:
      case op::EpilogueOp::even:
      case op::EpilogueOp::odd:
        return refuse("the epilogue has {}, which is no short sequence of PTX instructions", op::name(node.op))
            .as(RefusalCode::epilogue);
      default:
        break;
    }
  }
  return {};
}

layout::ComposedLayout smem_layout(const ProgramGemmPlan& plan, bool is_a) {
  const arch::Major major = is_a ? plan.major_a : plan.major_b;
  const int element_bits = bits(is_a ? plan.element_a : plan.element_b);
  const int mn = is_a ? plan.tile.m : plan.tile.n, k = plan.tile.k;
  const arch::SwizzleMode mode = arch::widest_swizzle(major, element_bits, mn, k).value_or_throw();
  return arch::smem_tile({.major = major, .mode = mode, .element_bits = element_bits, .mn = mn, .k = k})
      .value_or_throw();
}

Result<ProgramGemmPlan> plan_program_gemm(const op::GemmSignature& signature, const ProgramGemmDesign& design) {
  if (const Support has = check_feature(design.target, TargetFeature::wgmma); !has) return has.refusal();
  if (signature.groups != op::GroupedMode::none)
    return refuse("groups ({}) are not computed by programs", op::name(signature.groups)).as(RefusalCode::operation);
  if (design.split_k != 1) return refuse("programs do not split K, got {}", design.split_k).as(RefusalCode::design);
  if (const Support fits = check_functions(signature.epilogue); !fits) return fits.refusal();
  Result<GemmTile> tile = plan_gemm_tile(signature, design);
  if (!tile) return tile.refusal();
  ProgramGemmPlan plan{*std::move(tile), design.target, design.mix};
  const op::GemmSignature& operands = plan.operands;
  for (const auto& [role, tensor] : {std::pair("A", &operands.a), std::pair("B", &operands.b)}) {
    if (const Support fits = check_operand(role, *tensor, true); !fits) return fits.refusal();
  }
  if (const Support fits = check_output(operands); !fits) return fits.refusal();
  for (const auto& [element, to] :
       {std::pair(operands.a.element, &plan.element_a), std::pair(operands.b.element, &plan.element_b)}) {
    const Result<DType> in_smem = element_in_smem(element, operands.math, plan.mix);
    if (!in_smem) return in_smem.refusal();
    *to = *in_smem;
  }
  plan.major_a = operands.a.layout == op::MatrixLayout::row_major ? arch::Major::k : arch::Major::mn;
  plan.major_b = operands.b.layout == op::MatrixLayout::row_major ? arch::Major::mn : arch::Major::k;
  if (const Support fits = choose_atom(plan); !fits) return fits.refusal();
  if (const Support fits = check_majors(plan); !fits) return fits.refusal();
  if (const Support fits = check_tile(plan); !fits) return fits.refusal();
  plan.cluster_m = plan.is_transposed ? design.cluster_n : design.cluster_m;
  plan.cluster_n = plan.is_transposed ? design.cluster_m : design.cluster_n;
  if (const Support fits = check_cluster(plan); !fits) return fits.refusal();
  choose_output(plan);
  return plan;
}

Support check_arguments(const ProgramGemmPlan& plan, const op::GemmView& arguments) {
  if (const Support fits = check_extents(plan, arguments); !fits) return fits;
  if (!arguments.reads_product || arguments.k() == 0)
    return refuse("k and alpha must not be 0, got k = {} and alpha = {}", arguments.k(), arguments.alpha)
        .as(RefusalCode::shape);
  constexpr std::int64_t kMaxStride = std::numeric_limits<std::int32_t>::max();
  for (const auto& [role, operand] :
       {std::pair('A', &arguments.a), std::pair('B', &arguments.b), std::pair('D', &arguments.d)}) {
    const op::Tensor& tensor = operand->tensor;
    for (const std::int64_t stride : {tensor.row_stride(), tensor.column_stride(), tensor.batch_stride()}) {
      if (stride > kMaxStride)
        return refuse("a stride of {} is {} elements, the limit is {}", role, stride, kMaxStride)
            .as(RefusalCode::strides);
    }
  }
  return {};
}

namespace {

/// The input of the cost model of sm90_gemm, for mixes with TMA and wgmma.
Sm90CostInput sm90_cost_input(const ProgramGemmPlan& plan, const op::GemmView& arguments) {
  const CostInput of_tile = tile_cost(plan, arguments);
  const op::Tensor &a = (plan.is_transposed ? arguments.b : arguments.a).tensor,
                   &b = (plan.is_transposed ? arguments.a : arguments.b).tensor;
  const int element_bytes = bytes(plan.operands.a.element), d_bytes = of_tile.element_bytes_d;
  const bool is_mn_major_a = plan.major_a == arch::Major::mn, is_mn_major_b = plan.major_b == arch::Major::mn;
  const auto row_bytes = [&](bool is_mn_major, int mn) {
    return std::gcd((is_mn_major ? mn : plan.tile.k) * element_bytes, kSwizzleRow);
  };
  const int panels = plan.panel_columns == 0 ? 0 : plan.panels_m() * plan.panels_n();
  const bool loads_fragments = plan.mix == AtomMix::tma_register_wgmma;
  return {.m = of_tile.m,
          .n = of_tile.n,
          .k = of_tile.k,
          .batches = of_tile.batch,
          .tile = plan.tile,
          .stages = plan.stages,
          .cluster_m = plan.cluster_m,
          .cluster_n = plan.cluster_n,
          .row_bytes_a = row_bytes(is_mn_major_a, plan.tile.m),
          .row_bytes_b = row_bytes(is_mn_major_b, plan.tile.n),
          .is_mn_major_a = is_mn_major_a,
          .is_mn_major_b = is_mn_major_b,
          .is_d_column_major = plan.is_transposed,
          .d_splits_sectors = lines_split_sectors(arguments.d.tensor),
          .sectors_a = sector_read_amplification(a),
          .sectors_b = sector_read_amplification(b),
          .raster = plan.raster,
          .subtiles = panels,
          .tile_stores = {.boxes = panels},
          .plain_line_bytes = panels == 0 ? kColumnsOfStore * d_bytes : 0,
          .element_bytes = element_bytes,
          .d_bytes = d_bytes,
          .beside_bytes = of_tile.beside_bytes,
          .function_instructions = of_tile.function_instructions,
          .fma_per_clock = arch::fma_per_clock(arch::limits(plan.target), arch::MathUnit::wgmma, plan.wgmma->a),
          .loads_fragments = loads_fragments};
}

/// The input of the cost model of all families, for the other mixes.
CostInput cost_input(const ProgramGemmPlan& plan, const op::GemmView& arguments) {
  CostInput input = tile_cost(plan, arguments);
  const bool is_wgmma = plan.wgmma != nullptr;
  const arch::MathUnit unit = is_wgmma ? arch::MathUnit::wgmma : arch::MathUnit::mma_sync;
  const DType element = is_wgmma ? plan.wgmma->a : plan.mma->a;
  input.registers = 168;
  input.smem_bytes = plan.smem_bytes();
  input.fma_per_clock = arch::fma_per_clock(arch::limits(plan.target), unit, element);
  input.multiply_issue_share = is_wgmma ? 0.01 : 0.3;
  count_stores(plan, false, kColumnsOfStore, input);
  if (!is_wgmma) {
    input.smem_bytes_per_k = static_cast<double>(plan.warps_m * plan.warps_n) *
                             (plan.warp_tile_m() * bits(plan.element_a) + plan.warp_tile_n() * bits(plan.element_b)) /
                             8;
    input.smem_loads_per_k = input.smem_bytes_per_k / 512;
  }
  if (plan.mix == AtomMix::cp_async_wgmma)
    input.copies_per_k =
        static_cast<double>(plan.tile.m * bits(plan.element_a) + plan.tile.n * bits(plan.element_b)) / (8 * kLineBytes);
  return input;
}

}  // namespace

double estimate_us(const ProgramGemmPlan& plan, const op::GemmView& arguments) {
  const arch::ArchLimits& limits = arch::limits(plan.target);
  const bool is_by_tma = plan.mix == AtomMix::tma_wgmma || plan.mix == AtomMix::tma_register_wgmma;
  return is_by_tma ? estimate_us(limits, sm90_cost_input(plan, arguments))
                   : estimate_us(limits, cost_input(plan, arguments));
}

SumOrder sum_order(const ProgramGemmPlan& plan, const op::GemmView& arguments) {
  if (sums_exactly(arguments)) return exact_order();
  const bool is_tf32 = plan.element_a == DType::tf32;
  SumOrder order{.exchanges_operands = plan.is_transposed, .padded_k = padded_k(arguments, plan.tile.k)};
  if (plan.wgmma != nullptr) {
    order.unit = arch::MathUnit::wgmma;
    order.instruction = {64, 0, plan.wgmma->k};
  } else {
    order.unit = arch::MathUnit::mma_sync;
    order.instruction = {plan.mma->m, plan.mma->n, plan.mma->k};
  }
  if (is_tf32) order.rounding_a = order.rounding_b = Tf32Rounding::nearest;
  return order;
}

std::vector<ProgramGemmDesign> program_gemm_designs(const op::GemmSignature& signature, const Target& target) {
  struct Choice {
    AtomMix mix;
    TileShape tile;  // k in units of 64 bytes
    int stages, warps_m, warps_n;
    int cluster_m = 1;
  };
  constexpr std::array kChoices{
      Choice{AtomMix::tma_wgmma, {128, 256, 2}, 4, 8, 1},
      Choice{AtomMix::tma_wgmma, {128, 128, 2}, 5, 8, 1},
      Choice{AtomMix::tma_wgmma, {64, 64, 2}, 6, 4, 1},
      Choice{AtomMix::tma_wgmma, {128, 256, 2}, 4, 8, 1, 2},
      Choice{AtomMix::cp_async_wgmma, {128, 128, 2}, 4, 8, 1},
      Choice{AtomMix::tma_mma, {128, 128, 2}, 4, 2, 4},
      Choice{AtomMix::tma_register_wgmma, {128, 128, 2}, 4, 8, 1},
  };
  const bool is_transposed = computes_transposed(signature);
  std::vector<ProgramGemmDesign> designs;
  for (const Choice& choice : kChoices) {
    if (reads_full_tensor(signature) && accumulators_of(choice) > kAccumulatorsBesideTensor) continue;
    ProgramGemmDesign design;
    design.target = target;
    design.mix = choice.mix;
    design.tile = {choice.tile.m, choice.tile.n, choice.tile.k * 64 / bytes(signature.a.element)};
    design.stages = choice.stages;
    design.warps_m = choice.warps_m;
    design.warps_n = choice.warps_n;
    design.raster = {8, false};
    design.cluster_m = choice.cluster_m;
    if (is_transposed) {  // the design is that of the caller's problem
      std::swap(design.tile.m, design.tile.n);
      std::swap(design.warps_m, design.warps_n);
      std::swap(design.cluster_m, design.cluster_n);
      design.raster = design.raster.transposed();
    }
    designs.push_back(design);
  }
  return designs;
}

}  // namespace tilewright::plan
