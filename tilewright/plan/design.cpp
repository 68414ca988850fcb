#include "tilewright/plan/design.hpp"

#include <fmt/format.h>

namespace tilewright::plan {

std::string_view name(OpClass op_class) { return op_class == OpClass::simt ? "simt" : "tensor_op"; }

std::string_view name(Schedule schedule) { return schedule == Schedule::cooperative ? "cooperative" : "ping_pong"; }

std::optional<Schedule> parse_schedule(std::string_view text) {
  for (const Schedule schedule : {Schedule::cooperative, Schedule::ping_pong}) {
    if (text == name(schedule)) return schedule;
  }
  return std::nullopt;
}

std::string to_string(const Design& design) {
  const TileDescription& tile = design.tile;
  const MathInstruction& math = tile.math_instruction;
  const bool has_cluster = tile.cluster_shape != std::array{1, 1, 1};
  return fmt::format(
      "{} {} {} {} {} s{} w{}{}{}{} r{}{}{}{}", design.target.name(), name(math.op_class), fmt::join(math.shape, "x"),
      fmt::join(tile.threadblock_shape, "x"), op::name(math.math_operation), tile.stages,
      fmt::join(tile.warp_count, "x"), has_cluster ? fmt::format(" c{}", fmt::join(tile.cluster_shape, "x")) : "",
      tile.schedule == Schedule::ping_pong ? " ping_pong" : "", tile.swaps_operands ? " swap" : "", design.raster.width,
      design.raster.groups_rows ? "rows" : "", design.split_k > 1 ? fmt::format(" k{}", design.split_k) : "",
      design.repacks_operands ? " repack" : "");
}

}  // namespace tilewright::plan
