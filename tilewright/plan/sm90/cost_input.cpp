#include "tilewright/arch/limits.hpp"
#include "tilewright/plan/sm90/launch.hpp"
#include "tilewright/plan/sm90/work.hpp"

namespace tilewright::plan {

Sm90CostInput cost_input(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  const sm90::View problem = sm90::view(plan, arguments);
  const MeanExtents mean = mean_extents(arguments);
  const int element_bytes = bytes(plan.operands.a.element);
  const auto sectors = [](const OperandPath& path, const op::Tensor& tensor) {
    return path.uses_plain_loads() || path.is_repacked ? 1.0 : sector_read_amplification(tensor);
  };
  const ReadAmplification of = im2col_amplification(arguments);
  Sm90CostInput input{
      .m = plan.is_transposed ? mean.n : mean.m,
      .n = plan.is_transposed ? mean.m : mean.n,
      .k = mean.k,
      .batches = mean.batches,
      .classes = class_extents(arguments),
      .spread_m = plan.is_transposed ? arguments.spread_n() : arguments.spread_m(),
      .spread_n = plan.is_transposed ? arguments.spread_m() : arguments.spread_n(),
      .tile = plan.tile,
      .stages = plan.stages,
      .cluster_m = plan.cluster_m,
      .cluster_n = plan.cluster_n,
      .split_k = plan.split_k,
      .schedule = plan.schedule,
      .row_bytes_a = row_bytes(plan.path_a.major, element_bytes, plan.tile.m, plan.tile.k, plan.path_a.max_row_bytes),
      .row_bytes_b = row_bytes(plan.path_b.major, element_bytes, plan.path_b.tap_mn(plan.tile.n), plan.tile.k,
                               plan.path_b.max_row_bytes),
      .is_mn_major_a = plan.path_a.major == arch::Major::mn,
      .is_mn_major_b = plan.path_b.major == arch::Major::mn,
      .is_d_column_major = !plan.d_is_row_major(),
      .d_splits_sectors = lines_split_sectors(arguments.d.tensor),
      .sectors_a = sectors(plan.path_a, problem.a) * (plan.is_transposed ? of.b : of.a),
      .sectors_b = sectors(plan.path_b, problem.b) * (plan.is_transposed ? of.a : of.b),
      .distinct_a = distinct_share(sm90::operand_of(plan, arguments, true)),
      .distinct_b = distinct_share(sm90::operand_of(plan, arguments, false)),
      .raster = plan.raster,
      .reads_a = plan.path_a.uses_plain_loads() ? plain_load_reads(alignment_bytes(plan.operands.a)) : 0,
      .reads_b = plan.path_b.uses_plain_loads() ? plain_load_reads(alignment_bytes(plan.operands.b)) : 0,
      .plain_load_words = plan.plain_load_words,
      .subtiles = plan.subtiles(),
      .tile_stores = plan.tile_stores(),
      .plain_line_bytes = plan.stores_by_tma || plan.split_k > 1
                              ? 0
                              : line_bytes(plan.output_elements(), plan.subtile, plan.d_tile_columns()),
      .element_bytes = element_bytes,
      .d_bytes = bytes(plan.operands.d.element),
      .beside_bytes = beside_bytes(plan.operands),
      .slow_source_bytes = slow_source_bytes(plan.operands),
      .function_instructions = function_instructions(plan.operands.epilogue),
      .fma_per_clock = arch::fma_per_clock(arch::limits(plan.target), arch::MathUnit::wgmma, plan.atom->a),
      .tensor_maps = plan.made_tensor_maps(),
      .repacked_bytes = sm90::moved_bytes(plan, arguments),
      .exposed_clocks = exposed_clocks(plan.tile, plan.team(), plan.extras(), element_bytes),
      .shared_pixels = plan.shared_pixels(),
      .b_has_pixels = plan.b_has_pixels(),
      .loads_fragments = plan.loads_fragments(),
  };
  if (plan.groups() == op::GroupedMode::none && !plan.has_row_classes() && plan.split_k == 1 &&
      !plan.uses_plain_loads() && plan.made_tensor_maps() == 0 && mean.batches == 1) {
    set_kept_parts(arch::limits(plan.target), input);
  }
  return input;
}

}  // namespace tilewright::plan
