#include "tilewright/plan/sm80_gemm.hpp"

#include <algorithm>

#include "tilewright/arch/fragment.hpp"
#include "tilewright/arch/limits.hpp"
#include "tilewright/arch/smem_layout.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/plan/gathered.hpp"

namespace tilewright::plan {
namespace {

constexpr int kMaxPanelBytes = 128;  // one line of the 32 banks: what a swizzle of 16-byte chunks spreads over
constexpr int kMaxCpAsyncBytes = 16;
constexpr int kLanes = 32;
constexpr int kLdmatrixBytes = 16;     // of one lane, by ldmatrix.x4
constexpr double kIssuesPerClock = 4;  // of one SM
constexpr int kAddressRegisters =
    40;  // pointers, counters and predicates beside fragments; from ptxas -v of this family

// 3xTF32 with warp tiles that are wider than high: with 32x64, ptxas spilled 4 to 12 bytes at 255 registers.
constexpr int kWidePromotionRegisters = 40;
constexpr int kTileLoopRegisters = 24;  // state of the loop over tiles with split-K; from ptxas -v, as above

// The type in which the instruction multiplies.
DType multiplied_type(DType element, op::MathOperation math) {
  switch (math) {
    case op::MathOperation::multiply_add:
    case op::MathOperation::multiply_add_fast_accumulate:
      return element;
    case op::MathOperation::multiply_add_fast_f16:
      return DType::f16;
    case op::MathOperation::multiply_add_fast_bf16:
      return DType::bf16;
    case op::MathOperation::multiply_add_tf32:
    case op::MathOperation::multiply_add_fast_f32:
      return DType::tf32;
  }
  return element;
}

Result<const arch::MmaAtom*> find_atom(const op::GemmSignature& operands, const Sm80GemmDesign& design) {
  if (is_fp8(operands.a.element)) {
    return refuse("multiplies no 8-bit floats, got {} and {}", name(operands.a.element), name(operands.b.element))
        .as(RefusalCode::types);
  }
  const auto [m, n, k] = design.instruction;
  const DType a = multiplied_type(operands.a.element, operands.math);
  const DType b = multiplied_type(operands.b.element, operands.math);
  const arch::MmaAtom* atom = arch::find_mma_atom(m, n, k, a, b, operands.accumulator);
  if (atom == nullptr) {
    return refuse("no instruction {}x{}x{} of {} and {} accumulating in {}; there is: {}", m, n, k, name(a), name(b),
                  name(operands.accumulator), arch::known_instructions(a, b))
        .as(RefusalCode::types);
  }
  if (atom->m == 8 && bits(a) == 8) {
    return refuse("instruction {} is sm_75's: from sm_80 on use m16n8k16 or m16n8k32", atom->name)
        .as(RefusalCode::architecture);
  }
  if (!design.target.has_features_of(atom->min_target)) {
    return refuse("instruction {} needs {}, the target is {}", atom->name, atom->min_target.name(),
                  design.target.name())
        .as(RefusalCode::architecture);
  }
  return atom;
}

// `role` is A or B, `tile_mn` the tile's extent along M or N.
Result<SmemOperand> plan_operand(char role, const op::TensorSignature& tensor, bool is_k_major, int tile_mn, int tile_k,
                                 int threads) {
  SmemOperand operand;
  const int element_bytes = bytes(tensor.element);
  operand.element = tensor.element;
  operand.is_k_major = is_k_major;
  operand.is_interleaved = op::is_interleaved(tensor.layout);
  operand.strided = is_k_major ? tile_mn : tile_k;
  operand.contiguous = is_k_major ? tile_k : tile_mn;
  if (element_bytes == 1 && !is_k_major) {
    return refuse("{} is {} with stride 1 along {}: 8-bit mma.sync takes it along k only", role, name(tensor.element),
                  role == 'A' ? 'm' : 'n')
        .as(RefusalCode::strides);
  }
  operand.alignment_bytes = std::min(tensor.alignment, kMaxCpAsyncBytes / element_bytes) * element_bytes;
  if (!operand.is_async()) operand.alignment_bytes = element_bytes;
  // ldmatrix hands out 16-byte rows: along K for any width, across K for 16-bit elements only.
  operand.uses_ldmatrix = element_bytes <= 4 && (is_k_major || element_bytes == 2);
  const int line_bytes = operand.contiguous * element_bytes;
  operand.panel_bytes = std::min(line_bytes, kMaxPanelBytes);
  if (line_bytes % operand.panel_bytes != 0) {
    return refuse("a line of {} has {} bytes in a tile, not a multiple of the panel's {}", role, line_bytes,
                  operand.panel_bytes)
        .as(RefusalCode::design);
  }
  const auto access = operand.uses_ldmatrix ? arch::SmemAccess::rows_of_16_bytes : arch::SmemAccess::rows_of_32_bytes;
  const Result<layout::Swizzle> swizzle = arch::swizzle_for(operand.panel_bytes, access);
  if (!swizzle) return refuse("{}: {}", role, swizzle.reason()).as(RefusalCode::design);
  operand.swizzle = *swizzle;

  const int chunks_per_line = operand.panel_bytes / operand.alignment_bytes;
  const int lines = line_bytes / operand.panel_bytes * operand.strided;
  const int lines_per_pass = threads / chunks_per_line;
  if (threads % chunks_per_line != 0 || (lines >= lines_per_pass && lines % lines_per_pass != 0) ||
      (operand.strided % lines_per_pass != 0 && lines_per_pass % operand.strided != 0)) {
    return refuse("{} threads copy {} lines of {} at a time, which does not divide its {} panels of {} lines", threads,
                  lines_per_pass, role, lines / operand.strided, operand.strided)
        .as(RefusalCode::design);
  }
  return operand;
}

bool rounds_to_16_bits(op::MathOperation math) {
  return math == op::MathOperation::multiply_add_fast_f16 || math == op::MathOperation::multiply_add_fast_bf16;
}

// Elements of K of one load of fragments. Fast math loads f32 fragments in the shape of tf32 m16n8k8.
int step_k_of(op::MathOperation math, const arch::MmaAtom& atom) { return rounds_to_16_bits(math) ? 8 : atom.k; }

// Instruction tiles that one ldmatrix.x4 covers along M or N.
int tiles_per_load(const SmemOperand& operand, int atom_mn, int load_k) {
  if (!operand.uses_ldmatrix) return 1;
  const int matrices_along_k = load_k * bytes(operand.element) / 16;
  return std::max(1, 4 / matrices_along_k * 8 / atom_mn);
}

Support check_warp_tile(char role, int warp_tile, int atom_mn, const SmemOperand& operand, int load_k) {
  if (warp_tile % atom_mn != 0) {
    return refuse("warp tile {} {} is not divisible by the instruction's {}", role, warp_tile, atom_mn)
        .as(RefusalCode::design);
  }
  const int tiles = tiles_per_load(operand, atom_mn, load_k);
  if (warp_tile % (atom_mn * tiles) != 0) {
    return refuse("warp tile {} must be a multiple of {}, what one ldmatrix.x4 loads, got {}", role, atom_mn * tiles,
                  warp_tile)
        .as(RefusalCode::design);
  }
  if (!operand.is_k_major && !is_power_of_two(warp_tile)) {
    return refuse("warp tile {} must be a power of two where the operand's stride along it is 1, got {}", role,
                  warp_tile)
        .as(RefusalCode::design);
  }
  return {};
}

}  // namespace

layout::ComposedLayout smem_layout(const SmemOperand& operand) {
  using layout::IntTuple;
  const std::int64_t element_bytes = bytes(operand.element);
  const std::int64_t panel_elements = operand.panel_bytes / element_bytes;
  const std::int64_t panels = operand.contiguous / panel_elements;
  const std::int64_t panel_step = std::int64_t{operand.strided} * operand.panel_bytes;
  return {operand.swizzle, 0,
          layout::make_layout(IntTuple{operand.strided, IntTuple{panel_elements, panels}},
                              IntTuple{operand.panel_bytes, IntTuple{element_bytes, panel_step}})};
}

TileCopy tile_copy(const Sm80GemmPlan& plan, const SmemOperand& operand) {
  using layout::IntTuple;
  const int element_bytes = bytes(operand.element);
  const int vector = operand.alignment_bytes / element_bytes;
  const int panel = operand.panel_bytes / element_bytes;
  // Vectors are numbered within a line of a panel, then line after line, then panel after panel.
  const layout::Layout vectors(IntTuple{panel / vector, operand.strided, operand.contiguous / panel},
                               IntTuple{IntTuple::scaled_basis(vector, {1}), IntTuple::scaled_basis(1, {0}),
                                        IntTuple::scaled_basis(panel, {1})});
  return tile_copy(smem_layout(operand), vectors, plan.threads());
}

MmaFragmentLoads fragment_loads(const Sm80GemmPlan& plan, bool is_a) {
  using layout::composition;
  using layout::IntTuple;
  using layout::Layout;
  constexpr int kRows = 8, kMatrices = 4, kRegisterBytes = 4;  // of ldmatrix.x4
  const SmemOperand& operand = is_a ? plan.a : plan.b;
  const int extent = is_a ? plan.atom->m : plan.atom->n;  // of an instruction tile along M or N
  const int tile = is_a ? plan.tile.m : plan.tile.n;
  const int tiles_per_warp = (is_a ? plan.warp_tile_m() : plan.warp_tile_n()) / extent;

  MmaFragmentLoads loads;
  loads.step_k = step_k_of(plan.operands.math, *plan.atom);
  loads.tv = rounds_to_16_bits(plan.operands.math) ? arch::fragment(extent, loads.step_k, 1)
             : is_a                                ? plan.atom->a_tv
                                                   : plan.atom->b_tv;
  const layout::ComposedLayout smem = smem_layout(operand);
  const Layout mn = smem.layout.mode(operand.is_k_major ? 0 : 1);
  const Layout k = smem.layout.mode(operand.is_k_major ? 1 : 0);
  const Layout steps = composition(k, Layout(plan.tile.k / loads.step_k, loads.step_k));
  const Layout tiles = composition(mn, Layout(tile / extent, extent));
  const Layout warps = composition(tiles, Layout(IntTuple{plan.warps_m, plan.warps_n},
                                                 is_a ? IntTuple{tiles_per_warp, 0} : IntTuple{0, tiles_per_warp}));
  const Layout instruction =
      layout::concatenate({composition(mn, Layout(extent, 1)), composition(k, Layout(loads.step_k, 1))});
  const Layout fragment = composition(instruction, loads.tv);

  Layout lanes = fragment.mode(0);
  Layout all_loads = layout::concatenate({fragment.mode(1), composition(tiles, Layout(tiles_per_warp, 1))});
  if (operand.uses_ldmatrix) {
    // One matrix fills one register of an instruction tile. A lane addresses one row of 16 bytes of a matrix: a row
    // lies along K, and the next row of the matrix is the next along M or N. ldmatrix.trans exchanges the two.
    const int packed = kRegisterBytes / bytes(operand.element);
    const Layout values = loads.tv.mode(1);
    const auto registers = static_cast<int>(layout::size(values)) / packed;
    const int together = kMatrices / registers;  // instruction tiles of one ldmatrix.x4
    lanes = layout::concatenate({composition(instruction, Layout(kRows, operand.is_k_major ? 1 : extent)),
                                 composition(instruction, composition(values, Layout(registers, packed))),
                                 composition(tiles, Layout(together, 1))});
    all_loads = composition(tiles, Layout(tiles_per_warp / together, together));
  }
  TILEWRIGHT_CHECK(layout::size(lanes) == kLanes, "the lanes' layout {} is not that of a warp",
                   layout::to_string(lanes));
  const Layout threads = layout::concatenate({layout::coalesce(lanes), warps});
  check_steps(smem.swizzle, threads, layout::concatenate({all_loads, steps}));
  loads.offset = {smem.swizzle, 0, layout::concatenate({threads, layout::coalesce(all_loads), steps})};
  return loads;
}

AccumulatorTile accumulator_tile(const Sm80GemmPlan& plan) {
  using layout::IntTuple;
  using layout::Layout;
  const arch::MmaAtom& atom = *plan.atom;
  const int rows = plan.warps_m * atom.m;
  const Layout instruction = layout::composition(Layout(IntTuple{atom.m, atom.n}, IntTuple{1, rows}), atom.c_tv);
  const Layout warps(IntTuple{plan.warps_m, plan.warps_n}, IntTuple{atom.m, plan.warp_tile_n() * rows});
  const Layout threads = layout::concatenate({instruction.mode(0), warps});
  return accumulator_tile(layout::concatenate({threads, instruction.mode(1)}), rows, plan.tile.n);
}

int Sm80GemmPlan::band_bytes() const { return warps_m * atom->m * band_line() * bytes(operands.epilogue.compute); }

int Sm80GemmPlan::registers() const {
  const int element_registers = std::max(1, atom->register_bits / 32);
  const int tiles_m = warp_tile_m() / atom->m;
  const int tiles_n = warp_tile_n() / atom->n;
  const int accumulators = tiles_m * tiles_n * atom->c_registers * element_registers;
  const int step_bytes = (warp_tile_m() * bytes(a.element) + warp_tile_n() * bytes(b.element)) * atom->k;
  const int fragments = 2 * step_bytes / (kLanes * 4);
  const bool is_wide = promotes_accumulators && warp_tile_n() > warp_tile_m();
  const auto reach = [&](const op::TensorSignature& tensor, const SmemOperand& operand) {
    const int passes = std::max(operand.tile_bytes() / operand.alignment_bytes / threads(), 1);
    // If elements go through registers, ptxas keeps the pixels of all passes, and some addresses: kernels with 96
    // passes, or with 32 of an im2col matrix, spilled up to 208 bytes if only the elements were counted.
    const int of_elements = tensor.im2col == op::Im2colAccess::none ? passes * 5 / 4 : passes * 5;
    return gathered_registers(tensor, passes) + (operand.is_async() ? 0 : of_elements);
  };
  const int gathered = std::max(reach(operands.a, a) + reach(operands.b, b), folded_output_registers(operands));
  return gathered + (promotes_accumulators ? 2 : 1) * accumulators + fragments + kAddressRegisters +
         (split_k > 1 ? kTileLoopRegisters : 0) + (is_wide ? kWidePromotionRegisters : 0);
}

CostInput cost_input(const Sm80GemmPlan& plan, const op::GemmView& arguments) {
  CostInput input = tile_cost(plan, arguments);
  input.registers = plan.registers();
  count_stores(plan, plan.realigns_rows(), plan.tile.n, input);
  input.smem_bytes = plan.smem_bytes();
  input.fma_per_clock = arch::fma_per_clock(arch::limits(plan.target), arch::MathUnit::mma_sync, plan.atom->a);
  input.instructions_per_fma = plan.promotes_accumulators ? 3 : 1;
  const int warps = plan.warps_m * plan.warps_n;
  const double step_fma = static_cast<double>(plan.atom->m) * plan.atom->n * plan.atom->k;  // of one instruction
  input.multiply_issue_share = input.fma_per_clock / step_fma / kIssuesPerClock;
  const double bytes_a = plan.warp_tile_m() * bytes(plan.a.element);
  const double bytes_b = plan.warp_tile_n() * bytes(plan.b.element);
  input.smem_bytes_per_k = warps * (bytes_a + bytes_b);
  const auto bytes_per_load = [](const SmemOperand& operand) {
    return kLanes * (operand.uses_ldmatrix ? kLdmatrixBytes : bytes(operand.element));
  };
  input.smem_loads_per_k = warps * (bytes_a / bytes_per_load(plan.a) + bytes_b / bytes_per_load(plan.b));
  // An element that goes through registers is loaded and stored, and must arrive while one tile along K is multiplied.
  // With 1.25, as in simt_gemm and for im2col matrices, kernels of matrices with unaligned rows took 0.4 to 0.8 times
  // the estimate (H100 and H200, seeds 17 to 37).
  constexpr double kCopiesPerElement = 0.625, kCopiesPerIm2colElement = 1.25;
  // The address of a vector of an im2col matrix is computed from a pixel and a tap, which takes as long as these
  // numbers of copies: by cp.async, with divided coordinates, and element by element. Fitted to 62 times of
  // convolutions on an H100, 2026-11-26, which were 1.32 times as long as predicted in the geometric mean without them,
  // and 0.98 with them.
  constexpr double kIm2colCopies = 3, kDividedCopies = 4, kIm2colElements = 2;
  const auto copies = [&](const SmemOperand& operand, const op::TensorSignature& tensor, int tile_mn) {
    const double vectors = static_cast<double>(tile_mn) * bytes(operand.element) / operand.alignment_bytes;
    const bool is_async = operand.is_async();
    if (!is_async) input.copy_phases = 1;
    const double addresses = tensor.im2col == op::Im2colAccess::none      ? 1
                             : tensor.im2col == op::Im2colAccess::divided ? kDividedCopies
                             : is_async                                   ? kIm2colCopies
                                                                          : kIm2colElements;
    const double per_element = tensor.im2col == op::Im2colAccess::none ? kCopiesPerElement : kCopiesPerIm2colElement;
    return (is_async ? 1 : per_element) * addresses * vectors;
  };
  input.copies_per_k = copies(plan.a, plan.operands.a, plan.tile.m) + copies(plan.b, plan.operands.b, plan.tile.n);
  return input;
}

SumOrder sum_order(const Sm80GemmPlan& plan, const op::GemmView& arguments) {
  if (sums_exactly(arguments)) return exact_order();
  const bool is_tf32 = plan.operands.math == op::MathOperation::multiply_add_tf32;
  const Tf32Rounding rounding = is_tf32 ? Tf32Rounding::scaled : Tf32Rounding::none;
  return {.unit = arch::MathUnit::mma_sync,
          .instruction = {plan.atom->m, plan.atom->n, plan.atom->k},
          .exchanges_operands = plan.is_transposed,
          .rounding_a = rounding,
          .rounding_b = rounding,
          .padded_k = padded_k(arguments, plan.tile.k),
          .promotion_k = plan.promotes_accumulators ? plan.tile.k : 0,
          .split_k = plan.split_k,
          .split_k_step = plan.split_k > 1 ? plan.tile.k : 0};
}

Result<Sm80GemmPlan> plan_sm80_gemm(const op::GemmSignature& signature, const Sm80GemmDesign& design) {
  Result<GemmTile> tile = plan_gemm_tile(signature, design);
  if (!tile) return tile.refusal();
  if (const Support fits = check_warps_are_powers_of_two(design); !fits) return fits.refusal();
  Sm80GemmPlan plan{*std::move(tile), design.target, nullptr, {}, {}, false};
  const Result<const arch::MmaAtom*> atom = find_atom(plan.operands, design);
  if (!atom) return atom.refusal();
  plan.atom = *atom;
  if (plan.tile.k % plan.atom->k != 0) {
    return refuse("tile k {} is not divisible by the instruction's {}", plan.tile.k, plan.atom->k)
        .as(RefusalCode::design);
  }

  if (const Support fits = check_blocks_along_k(plan); !fits) return fits.refusal();
  const bool a_is_k_major = op::has_contiguous_rows(plan.operands.a.layout);
  const bool b_is_k_major = !op::has_contiguous_rows(plan.operands.b.layout);
  const auto [role_a, role_b] = plan.is_transposed ? std::pair{'B', 'A'} : std::pair{'A', 'B'};
  Result<SmemOperand> a = plan_operand(role_a, plan.operands.a, a_is_k_major, plan.tile.m, plan.tile.k, plan.threads());
  if (!a) return a.refusal();
  Result<SmemOperand> b = plan_operand(role_b, plan.operands.b, b_is_k_major, plan.tile.n, plan.tile.k, plan.threads());
  if (!b) return b.refusal();
  plan.a = *a;
  plan.b = *b;

  const int load_k = step_k_of(plan.operands.math, *plan.atom);
  if (const Support fits = check_warp_tile('m', plan.warp_tile_m(), plan.atom->m, plan.a, load_k); !fits) {
    return fits.refusal();
  }
  if (const Support fits = check_warp_tile('n', plan.warp_tile_n(), plan.atom->n, plan.b, load_k); !fits) {
    return fits.refusal();
  }
  plan.promotes_accumulators = plan.operands.math == op::MathOperation::multiply_add_fast_f32;
  if (const Support fits = check_smem(plan.smem_bytes(), design.target); !fits) return fits.refusal();
  const arch::ArchLimits& limits = arch::limits(design.target);
  const int available = std::min(limits.max_registers_per_thread, limits.registers_per_sm / plan.threads());
  if (plan.registers() > available) {
    return refuse("a warp tile of {}x{} needs about {} registers a thread, of {}", plan.warp_tile_m(),
                  plan.warp_tile_n(), plan.registers(), available)
        .as(RefusalCode::resources);
  }
  if (const Support fits = check_split_k(plan, residence_of(plan)); !fits) return fits.refusal();
  return plan;
}

}  // namespace tilewright::plan
