#include "tilewright/op/gemm_view.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "tilewright/op/epilogue_tensors.hpp"

namespace tilewright::op {
namespace {

// The single stride that addresses the whole mode, if its coordinates coalesce.
std::optional<std::int64_t> coalesced_stride(const Mode& mode) {
  std::optional<std::int64_t> first;
  std::int64_t expected = 0;
  for (int i = 0; i < mode.shape.rank(); ++i) {
    if (mode.shape[i] == 1) continue;
    if (!first) {
      first = mode.stride[i];
    } else if (mode.stride[i] != expected) {
      return std::nullopt;
    }
    expected = mode.shape[i] * mode.stride[i];
  }
  return first.value_or(0);
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

std::string_view name(OperandAccess access) {
  constexpr std::array<std::string_view, 7> kNames{"strided",     "folded", "an array of pointers", "ragged", "ragged",
                                                   "independent", "im2col"};
  return kNames[static_cast<std::size_t>(access)];
}

OperandView OperandView::folded(const Tensor& tensor, const Mode& rows, const Mode& columns, std::int64_t batch,
                                std::int64_t batch_stride) {
  OperandView view{.tensor = tensor};
  const std::optional<std::int64_t> row_stride = coalesced_stride(rows), column_stride = coalesced_stride(columns);
  const bool is_batch = batch != 1;
  view.tensor.shape = is_batch ? Dims{batch, rows.size(), columns.size()} : Dims{rows.size(), columns.size()};
  view.tensor.stride = is_batch ? Dims{batch_stride, row_stride.value_or(0), column_stride.value_or(0)}
                                : Dims{row_stride.value_or(0), column_stride.value_or(0)};
  if (row_stride && column_stride && view_matrix(view.tensor, "operand")) return view;
  view.access = OperandAccess::folded;
  view.rows = rows;
  view.columns = columns;
  return view;
}

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
  one.tensor = slice(tensor, index);
  if (access == OperandAccess::pointer_array) one.access = OperandAccess::strided;
  return one;
}

Support GemmView::check_strided(std::string_view family) const { return check_access(family, false); }
Support GemmView::check_not_folded(std::string_view family) const { return check_access(family, true); }

Support GemmView::check_access(std::string_view family, bool takes_all_but_folded) const {
  if (groups != GroupedMode::none && !takes_all_but_folded) {
    return refuse("{} needs matrices of one size, but the problem has groups ({})", family, name(groups))
        .as(RefusalCode::shape);
  }
  for (const auto& [role, operand] : {std::pair{"A", &a}, {"B", &b}, {"C", &c}, {"D", &d}}) {
    if (operand == &c && !reads_source) continue;
    if (operand->access == OperandAccess::strided) continue;
    if (operand->access != OperandAccess::folded && takes_all_but_folded) continue;
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
    if (operand->access != OperandAccess::im2col) operand->tensor = with_longest_lines(operand->tensor);
  }
  if (view.epilogue->is_gated()) return view;
  for (OperandView* const operand : {&view.c, &view.d}) operand->tensor = with_longest_lines(operand->tensor);
  return view;
}

GemmView with_layouts(GemmView view, const GemmSignature& signature) {
  if (view.groups != GroupedMode::none) return view;
  for (const auto& [operand, made_for] :
       {std::pair{&view.a, &signature.a}, {&view.b, &signature.b}, {&view.c, &signature.c}, {&view.d, &signature.d}}) {
    if (operand->access != OperandAccess::im2col) operand->tensor = with_layout(operand->tensor, made_for->layout);
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
  if (operand.access == OperandAccess::folded) return {.element = tensor.dtype};
  if (operand.access == OperandAccess::im2col) {
    return {.element = tensor.dtype,
            .alignment = operand.im2col.alignment(tensor, tensor.batch_stride()),
            .im2col = operand.im2col.divides() ? Im2colAccess::divided : Im2colAccess::direct,
            .tap_row = operand.im2col.tap_row(kMaxTapRow / bytes(tensor.dtype), tensor.distinct_matrices())};
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
  const double capacity =
      2.0 * static_cast<double>(view.m()) * static_cast<double>(view.n()) * static_cast<double>(view.k());
  return is_ragged(view.groups) ? capacity : capacity * static_cast<double>(view.batch());
}

}  // namespace tilewright::op
