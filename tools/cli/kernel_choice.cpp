#include "tools/cli/kernel_choice.hpp"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "tilewright/base/text.hpp"
#include "tilewright/engine/ranking.hpp"
#include "tilewright/tune/tune.hpp"
#include "tools/cli/extents.hpp"

namespace tilewright::cli {
namespace {

plan::OpClass parse_op_class(const KernelOptions& options, const plan::TileShape& instruction) {
  const bool is_scalar = instruction == plan::TileShape{1, 1, 1};
  if (options.op_class.empty()) return is_scalar ? plan::OpClass::simt : plan::OpClass::tensor_op;
  for (const plan::OpClass op_class : {plan::OpClass::simt, plan::OpClass::tensor_op}) {
    if (options.op_class == plan::name(op_class)) return op_class;
  }
  throw InvalidArgument(fmt::format("--op-class must be simt or tensor_op, got '{}'", printable(options.op_class, 40)));
}

plan::Schedule parse_schedule(const std::string& text) {
  const std::optional<plan::Schedule> schedule = plan::parse_schedule(text);
  if (!schedule)
    throw InvalidArgument(fmt::format("--schedule must be cooperative or ping_pong, got '{}'", printable(text, 40)));
  return *schedule;
}

// Whether the raster order has groups of tile rows, which are walked along n.
bool read_raster_along(const std::string& text) {
  if (!text.empty() && text != "m" && text != "n")
    throw InvalidArgument(fmt::format("--raster-along must be m or n, got '{}'", printable(text, 40)));
  return text == "n";
}

plan::TileShape shape_of(const std::array<int, 3>& extents) { return {extents[0], extents[1], extents[2]}; }

plan::FlatDesign read_design(const Target& target, const KernelOptions& options) {
  plan::FlatDesign design;
  design.target = target;
  design.tile = shape_of(parse_extents<3>(options.tile, "--tile"));
  if (options.stages != 0) design.stages = options.stages;
  if (!options.warps.empty()) {
    const std::array<int, 3> warps = parse_extents<3>(options.warps, "--warps");
    design.warps_m = warps[0];
    design.warps_n = warps[1];
    design.warps_k = warps[2];
  }
  if (!options.cluster.empty()) design.cluster = shape_of(parse_extents<3>(options.cluster, "--cluster"));
  if (!options.schedule.empty()) design.schedule = parse_schedule(options.schedule);
  design.swaps_operands = options.swaps_operands;
  if (options.raster_width != 0) design.raster.width = options.raster_width;
  design.raster.along_n = read_raster_along(options.raster_along);
  if (options.split_k != 0) design.split_k = options.split_k;
  design.splits_in_turn = options.splits_in_turn;
  design.repacks_operands = options.repacks_operands;
  if (!options.mix.empty()) {
    design.mix = plan::parse_mix(options.mix);
    if (!design.mix) {
      throw InvalidArgument(
          fmt::format("--mix must be tma_wgmma, cp_async_wgmma, tma_mma or tma_register_wgmma, got "
                      "'{}'",
                      printable(options.mix, 40)));
    }
    design.op_class = plan::OpClass::tensor_op;
    return design;
  }
  if (!options.instruction.empty()) {
    design.instruction = shape_of(parse_extents<3>(options.instruction, "--instruction"));
  }
  design.op_class = parse_op_class(options, design.instruction);
  return design;
}

void refuse_design_options_without_tile(const KernelOptions& options) {
  const std::pair<const char*, bool> design_options[] = {{"--stages", options.stages != 0},
                                                         {"--warps", !options.warps.empty()},
                                                         {"--instruction", !options.instruction.empty()},
                                                         {"--op-class", !options.op_class.empty()},
                                                         {"--cluster", !options.cluster.empty()},
                                                         {"--schedule", !options.schedule.empty()},
                                                         {"--raster-width", options.raster_width != 0},
                                                         {"--raster-along", !options.raster_along.empty()},
                                                         {"--split-k", options.split_k != 0},
                                                         {"--split-k-in-turn", options.splits_in_turn},
                                                         {"--swap-operands", options.swaps_operands},
                                                         {"--repack-operands", options.repacks_operands},
                                                         {"--mix", !options.mix.empty()}};
  for (const auto& [option, is_given] : design_options) {
    if (is_given && !options.has_design()) {
      throw InvalidArgument(
          fmt::format("{} is a part of an explicit design, which needs --tile, such as --tile 128x128x8", option));
    }
  }
  if (options.has_design() && !options.kernel.empty())
    throw InvalidArgument("give either --kernel or --tile, not both");
}

}  // namespace

engine::Options engine_options(const KernelOptions& options) {
  engine::Options result = tune::options_from_environment();
  if (options.device != "auto") result.device = options.device;
  result.required.deterministic |= options.deterministic;
  result.required.batch_invariant |= options.batch_invariant;
  return result;
}

Target choose_target(const engine::Engine& engine, const KernelOptions& options) {
  if (options.target.empty()) return engine.device()->properties().target;
  return parse_target(options.target).value_or_throw();
}

std::string origin(const ChosenKernel& chosen) {
  if (!chosen.rank) return "explicit design";
  const auto& [number, of, predicted_us] = *chosen.rank;
  const std::string prediction =
      std::isfinite(predicted_us) ? fmt::format("predicted {:.1f} us", predicted_us) : "without a prediction";
  return fmt::format("number {} of {}, {}", number, of, prediction);
}

ChosenKernel choose_kernel(const engine::Engine& engine, const op::Problem& problem, const KernelOptions& options) {
  refuse_design_options_without_tile(options);
  const Target target = choose_target(engine, options);
  if (options.has_design()) {
    const registry::KernelPtr kernel = engine.make_kernel(op::describe(problem), read_design(target, options));
    kernel->supports(problem).or_throw();
    engine.check_promises(*kernel, problem).or_throw();
    return {kernel};
  }
  const std::vector<engine::RankedKernel> ranked = engine.find_kernels(problem, {}, target);
  if (ranked.empty()) engine::throw_no_kernel(problem, engine.explain(problem, {}, target));
  for (std::size_t rank = 0; rank < ranked.size(); ++rank) {
    if (ranked[rank].kernel->name().find(options.kernel) == std::string::npos) continue;
    return {ranked[rank].kernel, Rank{rank + 1, ranked.size(), ranked[rank].estimate_us}};
  }
  engine::throw_unknown_name(problem, options.kernel, engine.explain(problem, {}, target));
}

}  // namespace tilewright::cli
