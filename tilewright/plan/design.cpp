#include "tilewright/plan/design.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

namespace tilewright::plan {
namespace {

std::string text(const TileShape& shape) { return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k); }

std::string_view family(const SimtGemmDesign&) { return "simt_gemm"; }
std::string_view family(const Sm80GemmDesign&) { return "sm80_gemm"; }
std::string_view family(const Sm90GemmDesign&) { return "sm90_gemm"; }
std::string_view family(const ProgramGemmDesign&) { return "cuda_program and mlir"; }

Support check_instruction(const FlatDesign& design, OpClass op_class) {
  if (design.op_class != op_class) {
    return refuse("needs a {} instruction, got {}", name(op_class), name(design.op_class)).as(RefusalCode::design);
  }
  if (design.warps_k != 1)
    return refuse("warp count k must be 1, got {}: warps do not split K", design.warps_k).as(RefusalCode::design);
  return {};
}

Support check_no_mix(const FlatDesign& design) {
  if (!design.mix) return {};
  return refuse("only cuda_program and mlir have a mix of atoms, got {}", name(*design.mix)).as(RefusalCode::design);
}

Support check_no_cluster(const FlatDesign& design) {
  if (design.cluster == TileShape{1, 1, 1}) return {};
  return refuse("only sm90_gemm and programs have clusters, got {}", text(design.cluster)).as(RefusalCode::design);
}

Support check_cluster_k(const FlatDesign& design) {
  if (design.cluster.k == 1) return {};
  return refuse("cluster shape k must be 1, got {}: split_k splits K among CTAs", design.cluster.k)
      .as(RefusalCode::design);
}

Support check_no_turns(const FlatDesign& design) {
  if (!design.splits_in_turn) return {};
  return refuse("only simt_gemm and sm80_gemm add the parts of split-K in turn").as(RefusalCode::design);
}

/// Refuses the choices that only sm90_gemm offers.
Support check_sm90_choices_are_unset(const FlatDesign& design) {
  if (design.schedule != Schedule::cooperative)
    return refuse("only sm90_gemm has schedules, got {}", name(design.schedule)).as(RefusalCode::design);
  if (design.swaps_operands) return refuse("only sm90_gemm swaps operands").as(RefusalCode::design);
  if (design.repacks_operands || design.repacks_only_b)
    return refuse("only sm90_gemm repacks operands").as(RefusalCode::design);
  return {};
}

Result<SimtGemmDesign> convert(const FlatDesign& flat, const op::GemmSignature& /*signature*/,
                               std::type_identity<SimtGemmDesign> /*to*/) {
  if (const Support fits = check_no_mix(flat); !fits) return fits.refusal();
  if (const Support fits = check_instruction(flat, OpClass::simt); !fits) return fits.refusal();
  if (flat.instruction != TileShape{1, 1, 1}) {
    return refuse("the instruction of CUDA cores is 1x1x1, got {}", text(flat.instruction)).as(RefusalCode::design);
  }
  if (const Support fits = check_no_cluster(flat); !fits) return fits.refusal();
  if (const Support fits = check_sm90_choices_are_unset(flat); !fits) return fits.refusal();
  return SimtGemmDesign{flat};
}

Result<Sm80GemmDesign> convert(const FlatDesign& flat, const op::GemmSignature& /*signature*/,
                               std::type_identity<Sm80GemmDesign> /*to*/) {
  if (const Support fits = check_no_mix(flat); !fits) return fits.refusal();
  if (const Support fits = check_instruction(flat, OpClass::tensor_op); !fits) return fits.refusal();
  if (const Support fits = check_no_cluster(flat); !fits) return fits.refusal();
  if (const Support fits = check_sm90_choices_are_unset(flat); !fits) return fits.refusal();
  return Sm80GemmDesign{flat, flat.instruction};
}

Result<Sm90GemmDesign> convert(const FlatDesign& flat, const op::GemmSignature& signature,
                               std::type_identity<Sm90GemmDesign> /*to*/) {
  if (const Support fits = check_no_mix(flat); !fits) return fits.refusal();
  if (const Support fits = check_no_turns(flat); !fits) return fits.refusal();
  if (const Support fits = check_instruction(flat, OpClass::tensor_op); !fits) return fits.refusal();
  if (const Support fits = check_cluster_k(flat); !fits) return fits.refusal();
  Sm90GemmDesign design{flat,
                        flat.cluster.m,
                        flat.cluster.n,
                        flat.schedule,
                        flat.swaps_operands,
                        flat.repacks_operands,
                        flat.repacks_only_b};
  if (const TileShape shape = wgmma_shape(design, signature); flat.instruction != shape) {
    return refuse("the instruction of this tile is {}, got {}", text(shape), text(flat.instruction))
        .as(RefusalCode::design);
  }
  return design;
}

Result<ProgramGemmDesign> convert(const FlatDesign& flat, const op::GemmSignature& /*signature*/,
                                  std::type_identity<ProgramGemmDesign> /*to*/) {
  if (const Support fits = check_instruction(flat, OpClass::tensor_op); !fits) return fits.refusal();
  if (const Support fits = check_sm90_choices_are_unset(flat); !fits) return fits.refusal();
  if (const Support fits = check_no_turns(flat); !fits) return fits.refusal();
  if (!flat.mix) return refuse("needs a mix of atoms").as(RefusalCode::design);
  if (const Support fits = check_cluster_k(flat); !fits) return fits.refusal();
  return ProgramGemmDesign{flat, *flat.mix, flat.cluster.m, flat.cluster.n};
}

template <class To>
Result<To> design_of(const Design& design, const op::GemmSignature& signature) {
  return std::visit(
      [&](const auto& given) -> Result<To> {
        using From = std::remove_cvref_t<decltype(given)>;
        if constexpr (std::is_same_v<From, To>) {
          return given;
        } else if constexpr (std::is_same_v<From, FlatDesign>) {
          return convert(given, signature, std::type_identity<To>());
        } else {
          return refuse("the design is one of {}", family(given)).as(RefusalCode::design);
        }
      },
      design);
}

FlatDesign with_tiling(const GemmTiling& tiling) {
  FlatDesign flat;
  static_cast<GemmTiling&>(flat) = tiling;
  return flat;
}

FlatDesign flattened(const FlatDesign& design, const op::GemmSignature* /*signature*/) { return design; }
FlatDesign flattened(const SimtGemmDesign& design, const op::GemmSignature* /*signature*/) {
  return with_tiling(design);
}
FlatDesign flattened(const Sm80GemmDesign& design, const op::GemmSignature* /*signature*/) {
  FlatDesign flat = with_tiling(design);
  flat.instruction = design.instruction;
  flat.op_class = OpClass::tensor_op;
  return flat;
}
FlatDesign flattened(const Sm90GemmDesign& design, const op::GemmSignature* signature) {
  TILEWRIGHT_CHECK(signature != nullptr, "a design of sm90_gemm belongs to a GEMM");
  FlatDesign flat = with_tiling(design);
  flat.instruction = wgmma_shape(design, *signature);
  flat.op_class = OpClass::tensor_op;
  flat.cluster = {design.cluster_m, design.cluster_n, 1};
  flat.schedule = design.schedule;
  flat.swaps_operands = design.swaps_operands;
  flat.repacks_operands = design.repacks_operands;
  flat.repacks_only_b = design.repacks_only_b;
  return flat;
}

FlatDesign flattened(const ProgramGemmDesign& design, const op::GemmSignature* /*signature*/) {
  FlatDesign flat = with_tiling(design);
  flat.op_class = OpClass::tensor_op;
  flat.mix = design.mix;
  flat.cluster = {design.cluster_m, design.cluster_n, 1};
  return flat;
}

std::string split_k_text(const GemmTiling& design) {
  return design.split_k == 1 ? "" : fmt::format(" k{}{}", design.split_k, design.splits_in_turn ? " in turn" : "");
}

std::string sm90_choices(const auto& design, const TileShape& cluster) {
  return fmt::format("{}{}{}{}{}", cluster == TileShape{1, 1, 1} ? "" : " c" + text(cluster),
                     design.schedule == Schedule::ping_pong ? " ping_pong" : "", design.swaps_operands ? " swap" : "",
                     split_k_text(design),
                     design.repacks_only_b     ? " repack_b"
                     : design.repacks_operands ? " repack"
                                               : "");
}

std::string instruction_text(const FlatDesign& design) {
  return fmt::format(" {} {}", name(design.op_class), text(design.instruction));
}
std::string instruction_text(const SimtGemmDesign&) { return ""; }
std::string instruction_text(const Sm80GemmDesign& design) { return " " + text(design.instruction); }
std::string instruction_text(const Sm90GemmDesign&) { return ""; }
std::string instruction_text(const ProgramGemmDesign& design) { return fmt::format(" {}", name(design.mix)); }

std::string other_choices(const FlatDesign& design) {
  return (design.mix ? fmt::format(" {}", name(*design.mix)) : "") +
         (design.warps_k == 1 ? "" : fmt::format(" wk{}", design.warps_k)) + sm90_choices(design, design.cluster);
}
std::string other_choices(const SimtGemmDesign& design) { return split_k_text(design); }
std::string other_choices(const Sm80GemmDesign& design) { return split_k_text(design); }
std::string other_choices(const ProgramGemmDesign& design) {
  const TileShape cluster{design.cluster_m, design.cluster_n, 1};
  return cluster == TileShape{1, 1, 1} ? "" : " c" + text(cluster);
}
std::string other_choices(const Sm90GemmDesign& design) {
  return sm90_choices(design, {design.cluster_m, design.cluster_n, 1});
}

}  // namespace

std::string_view name(OpClass op_class) { return op_class == OpClass::simt ? "simt" : "tensor_op"; }

std::string_view name(Schedule schedule) { return schedule == Schedule::cooperative ? "cooperative" : "ping_pong"; }

std::string_view name(AtomMix mix) {
  switch (mix) {
    case AtomMix::tma_wgmma:
      return "tma_wgmma";
    case AtomMix::cp_async_wgmma:
      return "cp_async_wgmma";
    case AtomMix::tma_mma:
      return "tma_mma";
    case AtomMix::tma_register_wgmma:
      return "tma_register_wgmma";
  }
  return "";
}

std::optional<AtomMix> parse_mix(std::string_view text) {
  for (const AtomMix mix :
       {AtomMix::tma_wgmma, AtomMix::cp_async_wgmma, AtomMix::tma_mma, AtomMix::tma_register_wgmma}) {
    if (text == name(mix)) return mix;
  }
  return std::nullopt;
}

std::optional<Schedule> parse_schedule(std::string_view text) {
  for (const Schedule schedule : {Schedule::cooperative, Schedule::ping_pong}) {
    if (text == name(schedule)) return schedule;
  }
  return std::nullopt;
}

const GemmTiling& tiling(const Design& design) {
  return std::visit([](const auto& each) -> const GemmTiling& { return each; }, design);
}
GemmTiling& tiling(Design& design) {
  return std::visit([](auto& each) -> GemmTiling& { return each; }, design);
}

Result<SimtGemmDesign> simt_gemm_design(const Design& design, const op::GemmSignature& signature) {
  return design_of<SimtGemmDesign>(design, signature);
}
Result<Sm80GemmDesign> sm80_gemm_design(const Design& design, const op::GemmSignature& signature) {
  return design_of<Sm80GemmDesign>(design, signature);
}
Result<Sm90GemmDesign> sm90_gemm_design(const Design& design, const op::GemmSignature& signature) {
  return design_of<Sm90GemmDesign>(design, signature);
}

Result<ProgramGemmDesign> program_gemm_design(const Design& design, const op::GemmSignature& signature) {
  return design_of<ProgramGemmDesign>(design, signature);
}

bool computes_transposed(const op::GemmSignature& signature, bool swaps_operands) {
  if (signature.epilogue.is_gated()) return false;
  return op::has_contiguous_rows(signature.d.layout) == swaps_operands;
}

TileShape wgmma_shape(const Sm90GemmDesign& design, const op::GemmSignature& signature) {
  constexpr int kRows = 64, kBytesAlongK = 32;
  const bool along_m = computes_transposed(signature, design.swaps_operands);
  return {kRows, along_m ? design.tile.m : design.tile.n, kBytesAlongK / bytes(signature.a.element)};
}

FlatDesign flatten(const Design& design, const op::GemmSignature* signature) {
  return std::visit([&](const auto& each) { return flattened(each, signature); }, design);
}

std::string to_string(const Design& design) {
  return std::visit(
      [](const auto& each) {
        return fmt::format("{}{} {} s{} w{}x{} r{}{}{}", each.target.name(), instruction_text(each), text(each.tile),
                           each.stages, each.warps_m, each.warps_n, each.raster.width,
                           each.raster.along_n ? "rows" : "", other_choices(each));
      },
      design);
}

}  // namespace tilewright::plan
