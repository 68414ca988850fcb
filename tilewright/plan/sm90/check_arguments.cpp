#include <limits>

#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/folded.hpp"
#include "tilewright/plan/sm90/folded.hpp"
#include "tilewright/plan/sm90/im2col.hpp"
#include "tilewright/plan/sm90/launch.hpp"
#include "tilewright/plan/sm90/tensor_maps.hpp"
#include "tilewright/plan/sm90/work.hpp"

namespace tilewright::plan {
namespace {

using namespace sm90;

/// Refuses operands whose plain loads need a step from one pass to the next that exceeds 31 bits; see
/// copy/plain_load_operand.cuh.
Support check_plain_loads(const OperandPath& operand, int tile_mn, int tile_k, const op::Tensor& tensor) {
  constexpr std::int64_t kMaxStep = (std::int64_t{1} << 31) - 1;
  if (!operand.uses_plain_loads()) return {};
  const Result<arch::SwizzleMode> mode = arch::widest_swizzle(operand.major, bits(tensor.dtype), tile_mn, tile_k);
  if (!mode) return mode.refusal();
  const int lines = TmaOperandPlan::lines_of_pass(operand.plain_load_bytes, arch::width_bytes(*mode));
  const std::int64_t step = lines * leading_dimension(tensor) * bits(tensor.dtype) / 8;
  if (step > kMaxStep)
    return refuse("plain loads advance by {} bytes from one pass to the next, the limit is {}", step, kMaxStep)
        .as(RefusalCode::strides);
  return {};
}

Support check_tma_strides(const op::Tensor& tensor) {
  constexpr auto kMaxStride = static_cast<std::int64_t>(kTensorMapStrideLimit);
  const std::int64_t row_bytes = leading_dimension(tensor) * bits(tensor.dtype) / 8;
  if (row_bytes >= kMaxStride)
    return refuse("rows are {} bytes apart, TMA needs strides below {}", row_bytes, kMaxStride)
        .as(RefusalCode::strides);
  if (tensor.batch_stride() >= kMaxStride / bytes(tensor.dtype)) {
    return refuse("matrices are {} elements of {} apart, TMA needs strides below {} bytes", tensor.batch_stride(),
                  name(tensor.dtype), kMaxStride)
        .as(RefusalCode::strides);
  }
  return {};
}

Refusal refuse_pieces() {
  return refuse("an im2col matrix is repacked if its K has two strides and pieces of multiples of {} bytes", kTmaBytes)
      .as(RefusalCode::strides);
}

/// Refuses an im2col or folded operand that TMA cannot load.
Support check_gathered_loads(const Sm90GemmSketch& plan, const op::OperandView& operand, bool is_a) {
  const OperandPath& path = is_a ? plan.path_a : plan.path_b;
  if (path.is_repacked && !path.has_row_classes && !repacked_pieces(operand)) return refuse_pieces();
  if (!path.is_im2col && !path.is_folded && !path.has_row_classes) return {};
  const int element_bytes = bytes(operand.tensor.dtype);
  const int tile_mn = is_a ? plan.tile.m : plan.tile.n;
  const int row =
      row_bytes(path.major, element_bytes, path.tap_mn(tile_mn), path.tap_k(plan.tile.k), path.max_row_bytes);
  if (path.is_im2col || path.has_row_classes) return check_im2col(operand, row / element_bytes);
  const int lines = path.major == arch::Major::k ? tile_mn : plan.tile.k;
  return check_folded(is_a ? 'A' : 'B', operand, lines_are_rows(plan, is_a), row / element_bytes, lines);
}

/// Refuses classes of rows that TMA cannot load or store.
Support check_classes(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  if (arguments.reads_source) {
    return refuse("the gradient of a convolution with a stride cannot read C: beta must be 0, got {}", arguments.beta)
        .as(RefusalCode::scalars)
        .of("C");
  }
  if (arguments.batch() != 1) {
    return refuse("the gradient of a convolution with a stride has one group, got {}", arguments.batch())
        .as(RefusalCode::shape);
  }
  const op::Im2col& a = arguments.a.im2col;
  if (a.h.step != 1 || a.w.step != 1 || row_class_count(arguments.a) > plan.row_classes()) {
    return refuse("strides of {}x{} make {} classes of pixels, at most {} are computed in one launch", a.h.divisor,
                  a.w.divisor, row_class_count(arguments.a), plan.row_classes())
        .as(RefusalCode::shape);
  }
  if (plan.path_b.is_repacked && !repacked_pieces(arguments.b)) return refuse_pieces();
  const std::vector<RowClass> classes = classes_of(plan, arguments, workspace(plan, arguments));
  if (!classes.empty() && classes[0].k() == 0) return refuse("no tap meets a pixel").as(RefusalCode::shape);
  for (const RowClass& row_class : classes) {
    if (const Support fits = check(class_output_map(plan, row_class.d)); !fits) {
      return refuse("TMA cannot store every {}th pixel: {}", a.w.divisor, fits.reason()).as(RefusalCode::shape);
    }
    if (row_class.k() == 0) continue;
    if (const Support loads = check_gathered_loads(plan, row_class.a, true); !loads) return loads;
    if (const Support loads = check_gathered_loads(plan, row_class.b, false); !loads) return loads;
  }
  return {};
}

}  // namespace

Support check_arguments(const Sm90GemmSketch& plan, const op::GemmView& arguments) {
  if (const Support fits = check_extents(plan, arguments); !fits) return fits;
  if (!arguments.reads_product || arguments.k() == 0) {
    return refuse("k and alpha must not be 0, got k = {} and alpha = {}", arguments.k(), arguments.alpha)
        .as(RefusalCode::shape);
  }
  const View problem = view(plan, arguments);
  // TMA stores whole units of 16 bytes: a box of D whose lines ended within such a unit overwrote the bytes after the
  // line (H200, driver 580).
  const std::int64_t line =
      plan.d_is_row_major() ? problem.n / plan.operands.epilogue.columns_per_element() : problem.m;
  const std::int64_t line_bytes = line * bytes(arguments.d.tensor.dtype);
  if (plan.stores_by_tma && line_bytes % kTmaBytes != 0) {
    return refuse("{} of D have {} bytes, TMA stores multiples of {}", plan.d_is_row_major() ? "rows" : "columns",
                  line_bytes, kTmaBytes)
        .as(RefusalCode::alignment)
        .of("D");
  }
  if (const std::int64_t k_tiles = ceil_div(problem.k, plan.tile.k); k_tiles < plan.split_k) {
    return refuse("k of {} has {} tiles of {}, fewer than split_k of {}", problem.k, k_tiles, plan.tile.k, plan.split_k)
        .as(RefusalCode::shape);
  }
  const auto [tiles_m, tiles_n] = cluster_tiles(plan, arguments);
  // The margin lets a persistent CTA step past the last tile without overflow.
  constexpr std::int64_t kMaxTiles = std::numeric_limits<std::int32_t>::max() - 1024;
  if (tiles_m * tiles_n > kMaxTiles / counted_matrices(plan, arguments)) {
    return refuse("needs {} tiles for each of {} matrices, the limit is {} in total", tiles_m * tiles_n,
                  arguments.batch(), kMaxTiles)
        .as(RefusalCode::shape);
  }
  if (const Support fits =
          check_reductions(reduction_counts(plan.operands.epilogue), reduction_blocks_of_warpgroups(plan, arguments));
      !fits) {
    return fits;
  }
  if (const Support fits = check_workspace(workspace(plan, arguments).bytes); !fits) return fits;
  for (const Support& fits : {check_plain_loads(plan.path_a, plan.tile.m, plan.tile.k, problem.a),
                              check_plain_loads(plan.path_b, plan.tile.n, plan.tile.k, problem.b)}) {
    if (!fits) return fits;
  }
  if (plan.has_row_classes()) {
    if (const Support fits = check_classes(plan, arguments); !fits) return fits;
  } else {
    for (const bool is_a : {true, false}) {
      if (const Support loads = check_gathered_loads(plan, operand_of(plan, arguments, is_a), is_a); !loads)
        return loads;
    }
  }
  for (const op::OperandView* operand : {&arguments.a, &arguments.b, &arguments.d}) {
    if (operand->access == op::OperandAccess::folded) continue;  // check_folded() has checked the strides
    if (const Support fits = check_tma_strides(operand->tensor); !fits) return fits;
  }
  for (int i = 0; i < plan.others.count; ++i) {
    if (const Support fits = check_tma_strides(other_output(plan, arguments, i)); !fits) return fits;
  }
  return {};
}

}  // namespace tilewright::plan
