#include "tilewright/op/gemm_view.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/padded_taps.hpp"
#include "tilewright/op/shared_pixels.hpp"
#include "tilewright/op/tap_columns.hpp"

namespace tilewright::op {
namespace {

// The stride of a coalesced mode of at most one coordinate; nothing if it has more.
std::optional<std::int64_t> single_stride(const Mode& mode) {
  if (mode.shape.rank() > 1) return std::nullopt;
  return mode.shape.rank() == 0 ? 0 : mode.stride[0];
}

bool is_contiguous(const Mode& mode) { return mode.shape.rank() > 0 && mode.stride[0] == 1; }

// The largest power of two in elements, of at most 16 bytes, such that vectors of that length along the contiguous mode
// neither cross the end of its first coordinate nor are misaligned. In a tensor that is written they do not reach
// behind the last element of a line either, since whole vectors are stored.
int folded_alignment(const OperandView& operand, bool is_written) {
  const bool by_rows = operand.has_row_major_modes();
  const Mode& along = by_rows ? operand.columns : operand.rows;
  if (!is_contiguous(along)) return 1;
  std::vector<std::int64_t> steps;
  for (const Mode* const mode : {by_rows ? &operand.rows : &operand.columns, &operand.batch}) {
    for (int i = 0; i < mode->shape.rank(); ++i) steps.push_back(mode->stride[i]);
  }
  for (int i = 1; i < along.shape.rank(); ++i) steps.insert(steps.end(), {along.stride[i], along.shape[0]});
  if (is_written) steps.push_back(along.shape[0]);
  return shared_alignment(operand.tensor, steps);
}

// The number of coordinates of each mode for which a kernel has code; see TensorSignature::folded_modes.
int folded_modes(const OperandView& operand) {
  int most = 0;
  for (const Mode* const mode : {&operand.rows, &operand.columns, &operand.batch})
    most = std::max(most, mode->shape.rank());
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(most, 2))));
}

// The largest power of two in elements, of at most 16 bytes, that divides the address, the leading dimension and the
// batch stride. For a tensor that is written it also divides the contiguous extent, because TMA stores whole units of
// 16 bytes (plan/sm90/launch.cpp).
int alignment_of(const Tensor& tensor, const MatrixView& view, bool is_written) {
  return shared_alignment(
      tensor, {view.lines(tensor) > 1 ? view.ld : 0, is_written ? view.line(tensor) : 0, tensor.batch_stride()});
}

}  // namespace

std::int64_t Mode::size() const {
  std::int64_t size = 1;
  for (int i = 0; i < shape.rank(); ++i) size *= shape[i];
  return size;
}

std::int64_t Mode::offset(std::int64_t index) const {
  std::int64_t offset = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    offset += index % shape[i] * stride[i];
    index /= shape[i];
  }
  return offset;
}

Mode Mode::coalesced() const {
  Mode result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    const int last = result.shape.rank() - 1;
    if (last >= 0 && stride[i] == result.shape[last] * result.stride[last]) {
      result.shape[last] *= shape[i];
    } else {
      result.shape.append(shape[i]);
      result.stride.append(stride[i]);
    }
  }
  return result;
}

std::string_view name(OperandAccess access) {
  constexpr std::array<std::string_view, 7> kNames{"strided",     "folded", "an array of pointers", "ragged", "ragged",
                                                   "independent", "im2col"};
  return kNames[static_cast<std::size_t>(access)];
}

OperandView OperandView::folded(const Tensor& tensor, const Mode& rows, const Mode& columns, const Mode& batch) {
  OperandView view{.tensor = tensor,
                   .access = OperandAccess::folded,
                   .rows = rows.coalesced(),
                   .columns = columns.coalesced(),
                   .batch = batch.coalesced()};
  const std::int64_t row_count = rows.size(), column_count = columns.size(), matrices = batch.size();
  const auto set_strides = [&](std::int64_t between_matrices, std::int64_t row_stride, std::int64_t column_stride) {
    view.tensor.shape = matrices == 1 ? Dims{row_count, column_count} : Dims{matrices, row_count, column_count};
    view.tensor.stride =
        matrices == 1 ? Dims{row_stride, column_stride} : Dims{between_matrices, row_stride, column_stride};
  };
  if (row_count == 0 || column_count == 0 || matrices == 0) {
    set_strides(0, std::max<std::int64_t>(column_count, 1), 1);
    view.access = OperandAccess::strided;
    return view;
  }
  const std::optional<std::int64_t> row_stride = single_stride(view.rows), column_stride = single_stride(view.columns),
                                    batch_stride = single_stride(view.batch);
  if (row_stride && column_stride && batch_stride) {
    set_strides(*batch_stride, *row_stride, *column_stride);
    if (view_matrix(view.tensor, "operand")) {
      view.access = OperandAccess::strided;
      return view;
    }
  }
  const bool by_rows = view.has_row_major_modes();
  const bool repeats = batch_stride && *batch_stride == 0;
  set_strides(repeats ? 0 : row_count * column_count, by_rows ? column_count : 1, by_rows ? 1 : row_count);
  return view;
}

OperandView OperandView::as_folded() const {
  if (access == OperandAccess::folded) return *this;
  TILEWRIGHT_CHECK(access == OperandAccess::strided && tensor.interleaved == InterleavedMode::none, "{} operand",
                   op::name(access));
  const auto mode = [](std::int64_t extent, std::int64_t stride) { return Mode{{extent}, {stride}}.coalesced(); };
  OperandView view = *this;
  view.access = OperandAccess::folded;
  view.rows = mode(tensor.rows(), tensor.row_stride());
  view.columns = mode(tensor.columns(), tensor.column_stride());
  view.batch = mode(tensor.batch(), tensor.batch_stride());
  return view;
}

bool OperandView::has_row_major_modes() const { return is_contiguous(columns) || !is_contiguous(rows); }

OperandView OperandView::gathered(const Tensor& images, const Im2col& im2col, std::int64_t batch,
                                  std::int64_t batch_stride) {
  OperandView view{.tensor = images};
  const std::int64_t rows = im2col.rows(), columns = im2col.columns();
  const auto set_row_stride = [&](std::int64_t stride) {
    view.tensor.shape = batch == 1 ? Dims{rows, columns} : Dims{batch, rows, columns};
    view.tensor.stride = batch == 1 ? Dims{stride, 1} : Dims{batch_stride, stride, 1};
  };
  if (const std::optional<std::int64_t> stride = im2col.row_stride()) {
    set_row_stride(*stride);
    if (view_matrix(view.tensor, "operand")) return view;
  }
  set_row_stride(std::max<std::int64_t>(columns, 1));
  view.access = OperandAccess::im2col;
  view.im2col = im2col;
  return view;
}

const Tensor& GemmView::tensor(std::string_view name) const {
  const Tensor* const found = find_tensor(tensors, name);
  TILEWRIGHT_CHECK(found != nullptr, "the problem has no tensor '{}'", name);
  return *found;
}

OperandView OperandView::matrix(std::int64_t index) const {
  OperandView one = *this;
  if (access == OperandAccess::folded) {
    const std::int64_t offset = batch.offset(index) * bytes(tensor.dtype);
    one.tensor = matrix_at(tensor, tensor.address + static_cast<std::uint64_t>(offset));
    one.batch = {};
    return one;
  }
  one.tensor = slice(tensor, index);
  if (access == OperandAccess::pointer_array) one.access = OperandAccess::strided;
  return one;
}

Support GemmView::check_strided(std::string_view family) const {
  if (groups != GroupedMode::none) {
    return refuse("{} needs matrices of one size, but the problem has groups ({})", family, name(groups))
        .as(RefusalCode::shape);
  }
  for (const auto& [role, operand] : {std::pair{"A", &a}, {"B", &b}, {"C", &c}, {"D", &d}}) {
    if (operand == &c && !reads_source) continue;
    if (operand->access == OperandAccess::strided) continue;
    return refuse("{} needs operands with a single stride per mode, but {} is {}", family, role,
                  op::name(operand->access))
        .as(RefusalCode::strides)
        .of(role);
  }
  return {};
}

GemmView view(const Gemm& gemm) {
  const bool has_c = gemm.c.address != 0 || (is_shape_only(gemm) && gemm.c.shape.rank() != 0);
  return {.a = OperandView::of(gemm.a),
          .b = OperandView::of(gemm.b),
          .c = OperandView::of(gemm.c),
          .d = OperandView::of(gemm.d),
          .alpha = gemm.alpha,
          .beta = gemm.beta,
          .accumulator = gemm.accumulator,
          .math = gemm.math,
          .epilogue = &gemm.epilogue,
          .tensors = gemm.tensors,
          .has_source = gemm.epilogue.reads_source() && has_c,
          .reads_source = reads_source(gemm),
          .reads_product = reads_product(gemm)};
}

GemmView with_longest_lines(GemmView view) {
  if (view.groups != GroupedMode::none) return view;
  for (OperandView* const operand : {&view.a, &view.b}) {
    if (operand->is_matrix()) operand->tensor = with_longest_lines(operand->tensor);
  }
  if (view.epilogue->is_gated()) return view;
  for (OperandView* const operand : {&view.c, &view.d}) {
    if (operand->is_matrix()) operand->tensor = with_longest_lines(operand->tensor);
  }
  return view;
}

GemmView with_layouts(GemmView view, const GemmSignature& signature) {
  if (view.groups != GroupedMode::none) return view;
  if (signature.a.has_padded_taps && can_pad_taps(view)) view = with_padded_taps(std::move(view), signature.a.tap_row);
  if (signature.a.shared_taps > 0 && can_share_pixels(view)) view = with_shared_pixels(std::move(view));
  if (signature.b.has_padded_taps && can_pad_columns(view))
    view = with_padded_columns(std::move(view), signature.b.tap_row);
  if (signature.b.shared_taps > 0 && can_share_columns(view)) view = with_shared_columns(std::move(view));
  for (const auto& [operand, made_for] :
       {std::pair{&view.a, &signature.a}, {&view.b, &signature.b}, {&view.c, &signature.c}, {&view.d, &signature.d}}) {
    if (!operand->is_matrix()) continue;
    operand->tensor = with_layout(operand->tensor, made_for->layout);
    if (made_for->folded_modes != 0 && operand->access == OperandAccess::strided) *operand = operand->as_folded();
  }
  return view;
}

Gemm to_gemm(const GemmView& view) {
  return {.a = view.a.tensor,
          .b = view.b.tensor,
          .c = view.c.tensor,
          .d = view.d.tensor,
          .alpha = view.alpha,
          .beta = view.beta,
          .accumulator = view.accumulator,
          .math = view.math,
          .epilogue = *view.epilogue,
          .tensors = {view.tensors.begin(), view.tensors.end()}};
}

TensorSignature describe_operand(const OperandView& operand, std::string_view role) {
  const Tensor& tensor = operand.tensor;
  if (operand.access == OperandAccess::folded) {
    return {.element = tensor.dtype,
            .layout = operand.has_row_major_modes() ? MatrixLayout::row_major : MatrixLayout::column_major,
            .alignment = folded_alignment(operand, role == "D"),
            .folded_modes = folded_modes(operand)};
  }
  if (operand.access == OperandAccess::im2col) {
    return {.element = tensor.dtype,
            .layout = tensor.column_stride() == 1 ? MatrixLayout::row_major : MatrixLayout::column_major,
            .alignment = operand.im2col.alignment(tensor, tensor.batch_stride()),
            .im2col = operand.im2col.blocks > 1  ? Im2colAccess::blocks
                      : operand.im2col.divides() ? Im2colAccess::divided
                                                 : Im2colAccess::direct,
            .tap_row = operand.im2col.tap_row(kMaxTapRow / bytes(tensor.dtype), tensor.distinct_matrices()),
            .has_padded_taps = operand.im2col.zeros > 0,
            .shared_taps = operand.im2col.shares_pixels ? static_cast<int>(operand.im2col.w.taps) : 0,
            .shared_step = operand.im2col.shares_pixels ? static_cast<int>(operand.im2col.w.tap_step) : 0,
            .has_many_classes = operand.im2col.row_classes() > kFewRowClasses};
  }
  const Result<MatrixView> view = view_matrix(tensor, role);
  const bool is_stacked_along_lines =
      operand.access ==
      (has_contiguous_rows(view->layout) ? OperandAccess::ragged_columns : OperandAccess::ragged_rows);
  int alignment = is_stacked_along_lines ? 1 : alignment_of(tensor, *view, role == "D");
  // Only the declared alignment is known of the leading dimensions of the groups.
  if (operand.access == OperandAccess::independent) alignment = shared_alignment(tensor, {});
  return {tensor.dtype, view->layout, alignment, tensor.is_pointer_array()};
}

GemmSignature describe(const GemmView& view) {
  TensorSignature d = describe_operand(view.d, "D");
  // The lines of D end where groups do, which may be anywhere.
  const bool ends_anywhere = has_contiguous_rows(d.layout) ? differs_in_n(view.groups) : differs_in_m(view.groups);
  if (ends_anywhere || view.groups == GroupedMode::independent) d.alignment = 1;
  return {.a = describe_operand(view.a, "A"),
          .b = describe_operand(view.b, "B"),
          .c = view.reads_source ? describe_operand(view.c, "C") : d,
          .d = d,
          .accumulator = view.accumulator,
          .math = view.math,
          .epilogue = *view.epilogue,
          .tensors = describe_epilogue_tensors(*view.epilogue, view.tensors, view.groups),
          .has_c = view.has_source,
          .groups = view.groups};
}

bool stores_accumulator(const GemmView& view) {
  if (is_accumulator(*view.epilogue)) return true;
  return view.alpha == 1.0 && view.beta == 0.0 && same_code(*view.epilogue, linear_combination(view.epilogue->compute));
}

double operations(const GemmView& view) {
  if (view.expected.is_given()) {
    return 2.0 * static_cast<double>(view.mean_m()) * static_cast<double>(view.mean_n()) *
           static_cast<double>(view.mean_k()) * static_cast<double>(view.working_batch());
  }
  const double capacity =
      2.0 * static_cast<double>(view.m()) * static_cast<double>(view.n()) * static_cast<double>(view.k());
  return is_ragged(view.groups) ? capacity : capacity * static_cast<double>(view.batch());
}

}  // namespace tilewright::op
