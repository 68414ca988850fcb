#include "tilewright/op/reference/matrix_of_batch.hpp"

#include <algorithm>
#include <numeric>

#include "tilewright/op/epilogue_tensors.hpp"

namespace tilewright::op {
namespace {

/// The rows or columns of an interval.
Tensor rows_of(Tensor tensor, const GroupInterval& rows) {
  const int mode = tensor.shape.rank() - 2;
  tensor.address += static_cast<std::uint64_t>(rows.begin * tensor.stride[mode] * bytes(tensor.dtype));
  tensor.shape[mode] = rows.size();
  return tensor;
}
Tensor columns_of(const Tensor& tensor, const GroupInterval& columns) {
  return transposed(rows_of(transposed(tensor), columns));
}

}  // namespace

MatrixOfBatch::MatrixOfBatch(const GemmView& batch, std::int64_t index)
    : tensors_(batch.tensors.begin(), batch.tensors.end()), view_(batch) {
  if (batch.groups == GroupedMode::independent) {
    take_group(batch, index);
    return;
  }
  // Operands that the call does not read may have no address.
  if (view_.reads_product) view_.a = view_.a.matrix(index);
  if (view_.reads_product) view_.b = view_.b.matrix(index);
  view_.d = view_.d.matrix(index);
  if (view_.reads_source) view_.c = view_.c.matrix(index);
  for (NamedTensor& each : tensors_) {
    if (each.tensor.batch() > 1 || !is_ragged(batch.groups)) each.tensor = slice(each.tensor, index);
  }
  view_.tensors = tensors_;
  if (batch.groups != GroupedMode::none) cut(group_interval(batch, index));
}

void MatrixOfBatch::cut(const GroupInterval& group) {
  const GroupedMode mode = view_.groups;
  view_.groups = GroupedMode::none;
  if (ends_along_k(mode)) {
    view_.a.tensor = columns_of(view_.a.tensor, group);
    view_.b.tensor = rows_of(view_.b.tensor, group);
    return;
  }
  const bool along_m = differs_in_m(mode);
  const auto part = [&](const Tensor& tensor) { return along_m ? rows_of(tensor, group) : columns_of(tensor, group); };
  for (OperandView* const operand : {along_m ? &view_.a : &view_.b, &view_.d}) operand->tensor = part(operand->tensor);
  if (view_.reads_source) view_.c.tensor = part(view_.c.tensor);
  for (NamedTensor& each : tensors_) {
    const auto all = epilogue_tensors(*view_.epilogue);
    const auto role = std::ranges::find(all, each.name, &EpilogueTensor::label);
    if (along_m ? role->broadcast.along_m : role->broadcast.along_n) each.tensor = part(each.tensor);
  }
  (along_m ? view_.first_row : view_.first_column) = group.begin;
}

void MatrixOfBatch::take_group(const GemmView& batch, std::int64_t index) {
  const IndependentGroup group = independent_group(batch, index);
  view_.groups = GroupedMode::none;
  const auto take = [&](OperandView& operand, char role) {
    operand = OperandView::of(matrix_of_group(batch, role, index));
  };
  if (view_.reads_product) take(view_.a, 'A');
  if (view_.reads_product) take(view_.b, 'B');
  if (view_.reads_source) take(view_.c, 'C');
  take(view_.d, 'D');
  for (NamedTensor& each : tensors_) {
    const auto all = epilogue_tensors(*view_.epilogue);
    const auto role = std::ranges::find(all, each.name, &EpilogueTensor::label);
    each.tensor = slice(each.tensor, index);
    if (role->broadcast.along_m) each.tensor = rows_of(each.tensor, {0, group.m});
    if (role->broadcast.along_n) each.tensor = columns_of(each.tensor, {0, group.n});
  }
  view_.tensors = tensors_;
}

DExtents d_extents(const GemmView& gemm, std::int64_t index) {
  if (gemm.groups == GroupedMode::independent) {
    const IndependentGroup group = independent_group(gemm, index);
    return {group.m, group.n};
  }
  if (differs_in_m(gemm.groups)) return {group_interval(gemm, index).size(), gemm.d_columns()};
  if (differs_in_n(gemm.groups)) return {gemm.m(), group_interval(gemm, index).size()};
  return {gemm.m(), gemm.d_columns()};
}

std::vector<std::int64_t> nonempty_matrices(const GemmView& gemm) {
  std::vector<std::int64_t> all;
  for (std::int64_t index = 0; index < gemm.batch(); ++index) {
    const DExtents extents = d_extents(gemm, index);
    if (extents.rows > 0 && extents.columns > 0) all.push_back(index);
  }
  return all;
}

std::vector<std::int64_t> computed_matrices(const GemmView& gemm) {
  if (gemm.groups != GroupedMode::none) return nonempty_matrices(gemm);
  std::vector<std::int64_t> all(static_cast<std::size_t>(gemm.batch()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

}  // namespace tilewright::op
