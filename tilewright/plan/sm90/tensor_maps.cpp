#include "tilewright/plan/sm90/tensor_maps.hpp"

#include "tilewright/base/rounding.hpp"
#include "tilewright/plan/sm90/im2col.hpp"

namespace tilewright::plan::sm90 {
namespace {

/// Matrices in global memory: the contiguous, the strided and the batch mode, in elements, and the strides of the last
/// two, in bytes.
struct Matrices {
  std::uint64_t address = 0;
  std::int64_t contiguous = 1, strided = 1, batch = 1;
  std::int64_t row_bytes = 0, matrix_bytes = 0;
};

/// The tensor map with the type, box and swizzle of `map` for these matrices. L2 fetches lines of 128 bytes, as long as
/// those of most boxes. With 256 bytes, 216 kernels that read an operand along M or N took 4 % longer in the mean, and
/// 314 that read it along K took 1.6 % longer; single sectors made the latter slower, too (seeds 52 and 53, H200,
/// 2026-11-27).
TensorMap map_of(TensorMap map, const Matrices& matrices) {
  const auto unsigned_of = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  map.rank = 3;
  map.address = matrices.address;
  map.extents = {unsigned_of(matrices.contiguous), unsigned_of(matrices.strided), unsigned_of(matrices.batch)};
  map.strides = {0, unsigned_of(matrices.row_bytes), unsigned_of(matrices.matrix_bytes)};
  map.promotion = TensorMapPromotion::bytes_128;
  return map;
}

/// The request for the tensor map of an operand with `contiguous` x `strided` elements, with the type, box and swizzle
/// of `map`. A pointer array's address is not that of a matrix; it is rounded down to one that a tensor map may have.
/// If there is only one row or only one matrix, its stride is never used, but must still be one that tensor maps allow.
TensorMapRequest request(const TensorMap& map, const op::Tensor& tensor, std::int64_t contiguous,
                         std::int64_t strided) {
  const std::int64_t ld = strided == 1 ? contiguous : leading_dimension(tensor);
  const std::int64_t row_bytes = round_up(ld * bytes(map.type), kTmaBytes);
  const std::int64_t batch = mapped_matrices(tensor);
  return {.map = map_of(map,
                        {.address = tensor.is_pointer_array() ? tensor.address / kTmaBytes * kTmaBytes : tensor.address,
                         .contiguous = contiguous,
                         .strided = strided,
                         .batch = batch,
                         .row_bytes = row_bytes,
                         .matrix_bytes = batch == 1 ? row_bytes * strided : tensor.batch_stride() * bytes(map.type)})};
}

}  // namespace

std::int64_t leading_dimension(const op::Tensor& tensor) { return op::view_matrix(tensor, "operand")->ld; }

std::int64_t mapped_matrices(const op::Tensor& tensor) { return tensor.batch_stride() == 0 ? 1 : tensor.batch(); }

TensorMapRequest operand_map(const TmaOperandPlan& operand, const op::Tensor& tensor, std::int64_t mn, std::int64_t k) {
  const bool is_k_major = operand.major == arch::Major::k;
  return request(operand.map, tensor, is_k_major ? k : mn, is_k_major ? mn : k);
}

TensorMapRequest repacked_map(const TmaOperandPlan& operand, const RepackedCopy& copy, std::int64_t offset) {
  return {.map = map_of(operand.map, {.address = static_cast<std::uint64_t>(offset),
                                      .contiguous = copy.contiguous,
                                      .strided = copy.lines,
                                      .batch = copy.matrices,
                                      .row_bytes = copy.pitch,
                                      .matrix_bytes = copy.pitch * copy.lines}),
          .is_in_workspace = true};
}

TensorMapRequest output_map(const Sm90GemmPlan& plan, const View& problem, const op::TensorSignature& described,
                            const op::Tensor& tensor) {
  const bool is_row_major = described.layout == op::MatrixLayout::row_major;
  const int element_bytes = bytes(described.element);
  const PanelBoxes boxes = panel_boxes(element_bytes, is_row_major, plan.subtile.panel_columns);
  const std::int64_t columns = problem.n / plan.operands.epilogue.columns_per_element();
  TensorMap map;
  map.type = tensor_map_type(described.element).value_or_throw();
  map.box = {static_cast<std::uint32_t>(boxes.line), static_cast<std::uint32_t>(boxes.lines), 1};
  map.swizzle = swizzle_of_width(boxes.line * element_bytes);
  return request(map, tensor, is_row_major ? columns : problem.m, is_row_major ? problem.m : columns);
}

TensorMap class_output_map(const Sm90GemmSketch& plan, const op::OperandView& d) {
  const int element_bytes = bytes(d.tensor.dtype);
  const PanelBoxes boxes = panel_boxes(element_bytes, true, plan.subtile.panel_columns);
  TensorMap map;
  map.type = tensor_map_type(d.tensor.dtype).value_or_throw();
  map.box = {static_cast<std::uint32_t>(boxes.line), static_cast<std::uint32_t>(boxes.lines)};
  map.swizzle = swizzle_of_width(boxes.line * element_bytes);
  return im2col_map(map, d, true);
}

}  // namespace tilewright::plan::sm90
