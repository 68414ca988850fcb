#include "tilewright/plan/sm90/launch.hpp"

#include <array>
#include <utility>

#include "tilewright/op/shared_pixels.hpp"
#include "tilewright/plan/folded.hpp"
#include "tilewright/plan/sm90/folded.hpp"
#include "tilewright/plan/sm90/im2col.hpp"
#include "tilewright/plan/sm90/repacking.hpp"
#include "tilewright/plan/sm90/row_classes.hpp"
#include "tilewright/plan/sm90/tensor_maps.hpp"
#include "tilewright/plan/sm90/work.hpp"
#include "tilewright/plan/tile_grid.hpp"

namespace tilewright::plan {
namespace {

using namespace sm90;

/// The L2 eviction policy for an operand each of whose tiles is multiplied by `times` tiles of the other operand. Data
/// that is read once is evicted first. This gained 1 to 4 % on problems with few rows but cost 12 % on batches of small
/// matrices, so batches use the normal policy (H200, docs/performance.md).
std::uint64_t load_policy(const op::GemmView& arguments, std::int64_t times) {
  return times == 1 && arguments.batch() == 1 ? arch::kEvictFirst : arch::kEvictNormal;
}

/// The values from which the kernel's parameters are computed.
struct LaunchValues {
  const op::GemmView& arguments;
  View problem;
  WorkspaceParts workspace;
  std::pair<std::int64_t, std::int64_t> cluster_tiles;
  std::vector<RowClass> classes;  // empty unless the plan has them
  ClassGrids grids;               // of the classes

  /// Class number `number`, or the first if there are fewer classes: a field that is not used needs a valid value.
  const RowClass& row_class(std::size_t number) const { return classes[number < classes.size() ? number : 0]; }
  /// Class number `number` if its operands are loaded, or else the first, which has the longest K.
  const RowClass& loaded_class(std::size_t number) const {
    return number < classes.size() && classes[number].k() > 0 ? classes[number] : classes[0];
  }
};

constexpr std::array<const char*, kMaxRowClasses> kClassNames{"of[0]", "of[1]", "of[2]", "of[3]", "of[4]",
                                                              "of[5]", "of[6]", "of[7]", "of[8]"};

/// Describes the field `of` of a TmaIm2colClasses or RepackedClasses. `view(number)` returns the OperandView of a
/// class, `request(view)` its tensor map.
template <class Sink, class View, class Request>
void describe_classes(Sink& sink, int classes, const View& view, const Request& request) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(classes); ++i) {
    const auto of_class = [&, i]() -> const op::OperandView& { return view(i); };
    describe_tma_im2col(
        sink, kClassNames[i], of_class, [&] { return request(of_class()); }, [] { return true; });
  }
}

/// Describes RowClasses of device/tilewright/scheduler/groups.cuh.
template <class Sink>
void describe_row_classes(Sink& sink, int classes, const LaunchValues* values) {
  const auto index = [&](const char* name, const auto& value) {
    sink.field(name, [&] { return static_cast<std::int32_t>(value()); });
  };
  const auto grids = [&]() -> const ClassGrids& { return values->grids; };
  sink.begin("groups");
  for (std::size_t i = 0; i < static_cast<std::size_t>(classes); ++i) {
    sink.begin(kClassNames[i]);
    index("first_tile", [&] { return grids().of[i].first_tile; });
    index("m", [&] { return grids().of[i].m; });
    index("k", [&] { return grids().of[i].k; });
    describe_tile_grid(sink, "grid", [&] { return grids().of[i].grid; });
    sink.end(sizeof(std::int32_t));
  }
  index("tiles", [&] { return grids().tiles; });
  sink.end(sizeof(std::int32_t));
}

/// Describes GlobalMatrix of device/tilewright/operand/global_matrix.cuh. The leading dimension of a tensor without an
/// address is 0.
template <class Sink, class TensorOf>
void describe_matrix(Sink& sink, const ParameterName& name, const TensorOf& tensor) {
  sink.begin(name);
  sink.field("address", [&] { return tensor().address; });
  sink.field("ld", [&] { return tensor().address == 0 ? std::int64_t{0} : leading_dimension(tensor()); });
  sink.field("batch_stride", [&] { return tensor().batch_stride(); });
  sink.end(sizeof(std::int64_t));
}

/// Describes the fields of RepackedMatrix and RepackedClasses behind their tensor maps. `copy` returns the operand's
/// RepackedCopy and its offset in the workspace.
template <class Sink, class CopyOf>
void describe_repacking(Sink& sink, const op::OperandView* operand, const CopyOf& copy) {
  const auto pieces = [&] { return repacked_pieces(*operand).value(); };
  sink.begin("from");
  sink.field("address", [&] { return operand->tensor.address; });
  sink.field("ld", [&] { return pieces().ld; });
  sink.field("batch_stride", [&] { return pieces().step; });
  sink.end(sizeof(std::int64_t));
  sink.field("offset", [&] { return copy().second; });
  sink.field("pitch", [&] { return copy().first.pitch; });
  sink.field("pieces", [&] { return static_cast<std::int32_t>(pieces().count); });
}

/// Describes TmaMatrix, GlobalMatrix, RepackedMatrix or one of operand/tma_batch.cuh of device/tilewright. `copy`,
/// which returns the operand's RepackedCopy and its offset in the workspace, is called only for RepackedMatrix and, for
/// the offset of the tensor maps, those of operand/tma_batch.cuh.
template <class Sink, class TensorOf, class CopyOf>
void describe_operand(Sink& sink, const char* name, const TmaOperandPlan& operand, const TensorOf& tensor,
                      const LaunchValues* values, const op::OperandView* view, std::int64_t View::*mn,
                      const CopyOf& copy) {
  if (operand.uses_plain_loads()) return describe_matrix(sink, name, tensor);
  if (operand.makes_tensor_maps) {
    sink.begin(name);
    sink.field("map", [&] { return operand_map(operand, tensor(), values->problem.*mn, values->problem.k); });
    if (!operand.ends_along_k) sink.field("addresses", [&] { return tensor().address; });
    sink.field("slots", [&] { return copy().second; });
    sink.end(kTensorMapAlignment);
    return;
  }
  if (!operand.is_repacked) {
    return sink.field(name, [&] { return operand_map(operand, tensor(), values->problem.*mn, values->problem.k); });
  }
  sink.begin(name);
  sink.field("copy", [&] { return repacked_map(operand, copy().first, copy().second); });
  describe_repacking(sink, view, copy);
  sink.end(kTensorMapAlignment);
}

/// Describes the tensor maps of the further outputs that TMA stores.
template <class Sink>
void describe_other_outputs(Sink& sink, const Sm90GemmPlan& plan, const LaunchValues* values) {
  if (plan.others.count == 0) return;
  sink.begin("outputs");
  for (int i = 0; i < plan.others.count; ++i) {
    sink.field(i == 0 ? "map[0]" : "map[1]", [&] {
      const op::Tensor& tensor = other_output(plan, values->arguments, i);
      const op::TensorSignature described{tensor.dtype, plan.operands.d.layout};  // it has the storage order of D
      return output_map(plan, values->problem, described, tensor);
    });
  }
  sink.end(kTensorMapAlignment);
}

/// Describes an operand whose matrix TMA gathers from a tensor: one with row classes, a folded one, or an im2col
/// matrix. Returns whether it is one.
template <class Sink>
bool describe_gathered_operand(Sink& sink, const char* name, const Sm90GemmPlan& plan, const LaunchValues* values,
                               bool is_a) {
  const TmaOperandPlan& operand = is_a ? plan.a : plan.b;
  if (operand.has_row_classes) {
    sink.begin(name);
    describe_classes(
        sink, plan.row_classes(),
        [&](std::size_t number) -> const op::OperandView& {
          return is_a ? values->loaded_class(number).a : values->loaded_class(number).b;
        },
        [&](const op::OperandView& of_class) {
          return TensorMapRequest{.map = im2col_map(operand.map, of_class, true),
                                  .is_in_workspace = operand.is_repacked};
        });
    if (operand.is_repacked) {
      describe_repacking(sink, values == nullptr ? nullptr : &values->arguments.b, [&] {
        return std::pair{values->workspace.b, values->workspace.at_b};
      });
    }
    sink.end(kTensorMapAlignment);
    return true;
  }
  const auto view = [&]() -> const op::OperandView& { return operand_of(plan, values->arguments, is_a); };
  if (operand.is_folded) {
    const bool by_rows = lines_are_rows(plan, is_a);
    describe_tma_folded(
        sink, name, [&] { return tma_folded_modes(view(), by_rows); },
        [&] { return TensorMapRequest{.map = folded_map(operand.map, view(), by_rows)}; });
    return true;
  }
  if (!operand.is_im2col) return false;
  const auto walks = [&] { return walks_taps(plan, values->arguments); };
  describe_tma_im2col(
      sink, name, view, [&] { return TensorMapRequest{.map = im2col_map(operand.map, view(), walks())}; }, walks);
  return true;
}

/// Describes PixelOutput of device/tilewright/operand/pixel_output.cuh.
template <class Sink>
void describe_pixel_output(Sink& sink, const LaunchValues* values) {
  const auto a = [&]() -> const op::Im2col& { return values->arguments.a.im2col; };
  const auto rows = [&]() -> const op::Mode& { return values->arguments.d.rows; };
  sink.begin("d");
  sink.field("address", [&] { return values->arguments.d.tensor.address; });
  sink.field("pixel", [&] { return rows().stride[0]; });
  sink.field("line", [&] { return rows().stride[1]; });
  sink.field("image", [&] { return rows().shape.rank() > 2 ? rows().stride[2] : std::int64_t{0}; });
  sink.field("lines", [&] { return static_cast<std::int32_t>(rows().shape[1]); });
  sink.field("positions", [&] { return static_cast<std::int32_t>(a().w.positions); });
  sink.field("width", [&] { return static_cast<std::int32_t>(op::stored_width(a())); });
  describe_divisor(sink, "by_positions", [&] { return divisor_by(a().w.positions); });
  describe_divisor(sink, "by_lines", [&] { return divisor_by(rows().shape[1]); });
  sink.end(sizeof(std::int64_t));
}

/// Describes TapColumns of device/tilewright/operand/tap_columns.cuh.
template <class Sink>
void describe_tap_columns(Sink& sink, const Sm90GemmPlan& plan, const LaunchValues* values) {
  const auto pixels = [&]() -> const op::Im2col& { return values->arguments.b.im2col; };
  const auto blocks = [&] { return pixels().columns_of_tap() / plan.tap_column_block(); };
  sink.begin("d");
  sink.field("address", [&] { return values->arguments.d.tensor.address; });
  sink.field("row", [&] { return values->arguments.d.tensor.row_stride(); });
  sink.field("channels", [&] { return static_cast<std::int32_t>(pixels().channels); });
  sink.field("blocks", [&] { return static_cast<std::int32_t>(blocks()); });
  describe_divisor(sink, "by_blocks", [&] { return divisor_by(blocks()); });
  sink.end(sizeof(std::int64_t));
}

/// Describes D: the tensor maps of its row classes, its taps, its lines of pixels, the modes of a folded D, its tensor
/// map, or a matrix.
template <class Sink>
void describe_d(Sink& sink, const Sm90GemmPlan& plan, const LaunchValues* values) {
  const auto d = [&]() -> const op::Tensor& { return values->arguments.d.tensor; };
  if (plan.has_row_classes()) {
    sink.begin("d");
    describe_classes(
        sink, plan.row_classes(),
        [&](std::size_t number) -> const op::OperandView& { return values->row_class(number).d; },
        [&](const op::OperandView& of_class) { return TensorMapRequest{.map = class_output_map(plan, of_class)}; });
    sink.end(kTensorMapAlignment);
  } else if (plan.has_tap_columns) {
    describe_tap_columns(sink, plan, values);
  } else if (plan.shared_pixels().are_shared()) {
    describe_pixel_output(sink, values);
  } else if (const int folded_modes = plan.operands.d.folded_modes; folded_modes != 0) {
    const bool by_rows = plan.d_is_row_major() != plan.is_transposed;
    sink.begin("d");
    sink.field("address", [&] { return d().address; });
    describe_folded(sink, "modes", folded_modes, by_rows,
                    [&]() -> const op::OperandView& { return values->arguments.d; });
    sink.end(sizeof(std::int64_t));
  } else if (plan.stores_by_tma) {
    sink.field("d", [&] { return output_map(plan, values->problem, plan.operands.d, d()); });
  } else {
    describe_matrix(sink, "d", d);
  }
}

/// Describes where the kernel reads the extents of the groups, or the row classes.
template <class Sink>
void describe_groups(Sink& sink, const Sm90GemmPlan& plan, const LaunchValues* values) {
  if (plan.has_row_classes()) return describe_row_classes(sink, plan.row_classes(), values);
  if (plan.groups() == op::GroupedMode::none) return;
  sink.begin("groups");
  const bool is_independent = plan.groups() == op::GroupedMode::independent;
  sink.field(is_independent ? "extents" : "ends", [&] { return values->arguments.ends.address; });
  if (is_independent) sink.field("leading_dimensions", [&] { return values->arguments.leading_dimensions.address; });
  if (!op::differs_in_k(plan.groups())) {
    describe_matrix(sink, "d", [&]() -> const op::Tensor& { return values->arguments.d.tensor; });
  }
  sink.end(sizeof(std::int64_t));
}

/// Describes Sm90GemmParameters of device/tilewright/gemm/sm90_parameters.cuh. `values` may be null for a sink that
/// does not evaluate values.
template <class Sink>
void describe_parameters(Sink& sink, const Sm90GemmPlan& plan, const LaunchValues* values) {
  const auto a = [&]() -> const op::Tensor& { return values->problem.a; };
  const auto b = [&]() -> const op::Tensor& { return values->problem.b; };
  const auto c = [&]() -> const op::Tensor& { return values->arguments.c.tensor; };
  const auto d = [&]() -> const op::Tensor& { return values->arguments.d.tensor; };
  describe_other_outputs(sink, plan, values);
  const auto view_of = [&](bool is_a) {
    return values == nullptr ? nullptr : &operand_of(plan, values->arguments, is_a);
  };
  if (!describe_gathered_operand(sink, "a", plan, values, true)) {
    describe_operand(sink, "a", plan.a, a, values, view_of(true), &View::m, [&] {
      return std::pair{values->workspace.a, values->workspace.at_a};
    });
  }
  if (!describe_gathered_operand(sink, "b", plan, values, false)) {
    describe_operand(sink, "b", plan.b, b, values, view_of(false), &View::n, [&] {
      return std::pair{values->workspace.b, values->workspace.at_b};
    });
  }
  describe_d(sink, plan, values);
  const auto index = [&](const char* name, const auto& value) {
    sink.field(name, [&] { return static_cast<std::int32_t>(value()); });
  };
  index("m", [&] { return values->problem.m; });
  index("n", [&] { return values->problem.n; });
  index("k", [&] { return values->problem.k; });
  index("batches", [&] { return values->arguments.batch(); });
  const auto batch_step = [](const op::Tensor& tensor) { return tensor.distinct_matrices() == 1 ? 0 : 1; };
  index("batch_step_a", [&] { return batch_step(a()); });
  index("batch_step_b", [&] { return batch_step(b()); });
  index("batch_step_c", [&] { return batch_step(c()); });
  describe_tile_grid(sink, "tiles", [&] {
    const auto [tiles_m, tiles_n] = values->cluster_tiles;
    return tile_grid(plan.raster, tiles_m, tiles_n, working_groups(plan, values->arguments));
  });
  // If C is not read, its field still needs a valid value: a null address or, for TMA, the tensor map of D.
  const auto reads_c = [&] { return values->arguments.reads_source; };
  if (plan.loads_source_by_tma) {
    sink.field("c", [&] { return output_map(plan, values->problem, plan.operands.c, reads_c() ? c() : d()); });
  } else {
    static const op::Tensor kNoTensor;
    describe_matrix(sink, "c", [&]() -> const op::Tensor& { return reads_c() ? c() : kNoTensor; });
  }
  describe_groups(sink, plan, values);
  sink.field("policy_a", [&] { return load_policy(values->arguments, values->cluster_tiles.second); });
  sink.field("policy_b", [&] { return load_policy(values->arguments, values->cluster_tiles.first); });
  sink.workspace("workspace", [&] { return static_cast<std::size_t>(values->workspace.bytes); });
  sink.field("reduction_parts", [&] { return values->workspace.reduction_parts; });
  describe_epilogue(sink, plan.operands.epilogue, values == nullptr ? nullptr : &values->arguments, plan.is_transposed);
  sink.finish();
}

}  // namespace

ParameterLayout parameter_layout(const Sm90GemmPlan& plan) {
  ParameterRecorder recorder;
  describe_parameters(recorder, plan, nullptr);
  return std::move(recorder).take();
}

Launch launch(const Sm90GemmPlan& plan, const op::GemmView& arguments) {
  const View problem = view(plan, arguments);
  const auto parts = workspace(plan, arguments);
  std::vector<RowClass> classes = plan.has_row_classes() ? classes_of(plan, arguments, parts) : std::vector<RowClass>{};
  const ClassGrids grids(plan, classes);
  const LaunchValues values{arguments, problem, parts, cluster_tiles(plan, arguments), std::move(classes), grids};
  Launch launch;
  launch.grid = {static_cast<std::uint32_t>(launched_ctas(plan, arguments)), 1, 1};
  launch.cooperative = plan.split_k > 1 || plan.repacks();
  launch.waits_for_last_kernel = !launch.cooperative;
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  launch.cluster = {static_cast<std::uint32_t>(plan.cluster_size()), 1, 1};
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(plan.smem_bytes());
  ParameterWriter writer(launch);
  describe_parameters(writer, plan, &values);
  return launch;
}

}  // namespace tilewright::plan
