// Any problem that is computed as a GEMM: D[m,n] = epilogue(sum over k of A[m,k] * B[k,n], C[m,n]) for each matrix of a
// batch. Kernel families, cost models and the reference work on this view instead of the original problem.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tilewright/op/gemm.hpp"
#include "tilewright/op/group_summary.hpp"
#include "tilewright/op/grouped_mode.hpp"
#include "tilewright/op/im2col.hpp"

namespace tilewright::op {

/// One mode of an operand as a CuTe layout shape:stride, first coordinate fastest, strides in elements. It has one
/// coordinate for each mode of the tensor that is folded into it; without coordinates its extent is 1.
struct Mode {
  Dims shape;
  Dims stride;

  std::int64_t size() const;
  /// The offset of `index` in elements. @pre 0 <= index < size()
  std::int64_t offset(std::int64_t index) const;
  /// The same mode with the fewest coordinates: those of extent 1 are left out, and those that coalesce are merged.
  Mode coalesced() const;
};

/// How the elements of an operand are addressed.
enum class OperandAccess : std::uint8_t {
  strided,         // rows, columns and batch have one stride each, in OperandView::tensor, which may be interleaved
  folded,          // rows, columns or batch have several coordinates, or neither rows nor columns are contiguous
  pointer_array,   // rows and columns as in a strided operand, and an array has the addresses of the matrices
  ragged_rows,     // a strided matrix whose rows are those of all groups; only the device knows where each begins
  ragged_columns,  // the same for columns
  independent,     // a pointer array; each matrix has extents and a leading dimension that only the device knows
  im2col,          // the pixels and taps of a convolution
};

/// Whether the groups are stacked in one matrix.
constexpr bool is_ragged(OperandAccess access) {
  return access == OperandAccess::ragged_rows || access == OperandAccess::ragged_columns;
}

/// "strided", "folded", "an array of pointers", "ragged", "independent", "im2col"
std::string_view name(OperandAccess access);

struct OperandView {
  /// (rows, columns), or (batch, rows, columns). The strides of a folded operand, and those of rows and columns of an
  /// im2col operand, are not valid; they only say which mode is contiguous.
  Tensor tensor;
  OperandAccess access = OperandAccess::strided;
  Mode rows = {}, columns = {}, batch = {};  // only for folded access; coalesced
  Im2col im2col = {};                        // only for im2col access

  /// A view of a matrix, of a strided batch or of a pointer array.
  static OperandView of(const Tensor& tensor) {
    return {.tensor = tensor,
            .access = tensor.is_pointer_array() ? OperandAccess::pointer_array : OperandAccess::strided};
  }
  /// A view with modes that may fold several coordinates; it is strided if each coalesces to one stride, and rows or
  /// columns are contiguous. `tensor` gives the address, element type and device.
  static OperandView folded(const Tensor& tensor, const Mode& rows, const Mode& columns, const Mode& batch = {});

  /// This operand with folded access. @pre it is folded, or a matrix or strided batch that is not interleaved
  OperandView as_folded() const;

  /// A view of the im2col matrix of `images`, or of a batch of these whose images begin `batch_stride` elements apart;
  /// it is strided if the matrix has one stride. `images` gives the address, element type and device.
  static OperandView gathered(const Tensor& images, const Im2col& im2col, std::int64_t batch,
                              std::int64_t batch_stride);

  /// Whether the strides of `tensor` address the rows and columns of its matrices.
  bool is_matrix() const { return access != OperandAccess::im2col && access != OperandAccess::folded; }

  /// See Im2col::distinct_share(); 1 unless the access is im2col.
  double distinct_share() const { return access == OperandAccess::im2col ? im2col.distinct_share() : 1.0; }

  /// Matrix `index` of the batch. @pre as op::slice
  OperandView matrix(std::int64_t index) const;

  /// Whether rows, columns and batch of a folded operand, in this order, have the layout row-major: the first
  /// coordinate of its columns has stride 1, or neither that of its columns nor that of its rows.
  bool has_row_major_modes() const;

  /// The offset of (row, column) from the first element of its matrix, in elements. @pre the access is not im2col
  std::int64_t offset(std::int64_t row, std::int64_t column) const {
    if (access == OperandAccess::folded) return rows.offset(row) + columns.offset(column);
    return tensor.offset(row, column);
  }
};

/// Refers to the problem that it was made from, which must outlive it. Copying does not allocate.
struct GemmView {  // NOLINT(clang-analyzer-core.uninitialized.Assign): it loses what the variant of a Result holds
  OperandView a;   // (m, k)
  OperandView b;   // (k, n)
  OperandView c;   // (m, n), or (m, n/2) if the epilogue pairs columns; valid only if reads_source
  OperandView d;   // shape as c
  double alpha = 1.0, beta = 0.0;
  DType accumulator = DType::f32;
  MathOperation math = MathOperation::multiply_add;
  const Epilogue* epilogue = nullptr;         // never null in a view made by view()
  std::span<const NamedTensor> tensors = {};  // auxiliary tensors of the epilogue, in any order
  bool has_source = false;     // C is present and in the epilogue graph: the kernel has code that reads it
  bool reads_source = false;   // this call reads C
  bool reads_product = false;  // this call reads A and B
  GroupedMode groups = GroupedMode::none;
  Tensor ends = {};                // of each group, see GroupedGemm::ends; valid only if there are groups
  Tensor leading_dimensions = {};  // see GroupedGemm; valid only if the groups are independent
  GroupSummary expected = {};      // see GroupedGemm
  /// The row and the column of D that the first element of this D has, for the row and column indices of epilogues.
  std::int64_t first_row = 0, first_column = 0;
  std::shared_ptr<const void> keeps = nullptr;  // owns what epilogue and tensors refer to, unless the problem does

  // Extents; at its capacity if there are groups.
  std::int64_t m() const { return a.tensor.rows(); }
  std::int64_t n() const { return b.tensor.columns(); }
  std::int64_t k() const { return a.tensor.columns(); }
  std::int64_t d_columns() const { return d.tensor.columns(); }
  /// The number of matrices, or of groups.
  std::int64_t batch() const { return groups == GroupedMode::none ? d.tensor.batch() : ends.shape[0]; }
  // For estimates: the number of groups that are not empty, and the extents of one of the mean size, as far as the host
  // knows them. It expects groups of the capacity in a masked mode.
  std::int64_t working_batch() const { return expected.is_given() ? std::min(expected.groups, batch()) : batch(); }
  std::int64_t mean_m() const { return mean(groups == GroupedMode::ragged_m, m(), expected.m); }
  std::int64_t mean_n() const { return mean(groups == GroupedMode::ragged_n, n(), expected.n); }
  std::int64_t mean_k() const { return mean(groups == GroupedMode::ragged_k, k(), expected.k); }
  GroupSpread spread_m() const { return spread(groups == GroupedMode::ragged_m, expected.m, expected.spread_m); }
  GroupSpread spread_n() const { return spread(groups == GroupedMode::ragged_n, expected.n, expected.spread_n); }
  bool is_empty() const { return m() == 0 || n() == 0 || batch() == 0; }
  /// The auxiliary tensor of that name. @pre the problem is valid and has it
  const Tensor& tensor(std::string_view name) const;
  /// The value of a scalar of the epilogue in this call.
  double scalar(std::string_view label) const { return scalar_value(*epilogue, label, alpha, beta); }

  /// Refuses folded operands, pointer arrays and groups, for kernels that support only strided matrices. `family` is
  /// named in the reason.
  Support check_strided(std::string_view family) const;

 private:
  std::int64_t mean(bool is_stacked, std::int64_t capacity, std::int64_t given) const {
    if (given > 0) return std::min(given, capacity);
    if (!is_stacked) return capacity;
    return ends.shape[0] == 0 ? 0 : (capacity + ends.shape[0] - 1) / ends.shape[0];
  }
  static GroupSpread spread(bool is_stacked, std::int64_t given, GroupSpread expected) {
    return given > 0 ? expected : is_stacked ? GroupSpread::unknown : GroupSpread::equal;
  }
};

/// The view of a GEMM is the GEMM itself. @pre validate(gemm)
GemmView view(const Gemm& gemm);

/// The view whose matrices of one row or one column have the longest lines, see op::with_longest_lines(). Folded and
/// im2col operands and operands of groups are left as they are, and so are C and D if the epilogue is gated, because it
/// needs a row-major D.
GemmView with_longest_lines(GemmView view);

/// The view whose matrices of one row or one column have the layouts of `signature`, if they may have them, whose
/// strided operands are folded where those of `signature` are, and whose taps are padded and pixels shared if those of
/// `signature` are.
GemmView with_layouts(GemmView view, const GemmSignature& signature);

/// Converts the view to a Gemm, for kernels that take one. @pre view.check_strided() accepted it
Gemm to_gemm(const GemmView& view);

/// The signature: types, layouts and the largest alignments, up to 16 bytes, that pointers, leading dimensions and
/// batch strides allow. If this call does not read C, the signature of C equals D's. @pre the problem is valid
GemmSignature describe(const GemmView& view);

/// The part of the signature for one operand; `role` is "D" for the output.
TensorSignature describe_operand(const OperandView& operand, std::string_view role);

/// Whether D is A*B: the graph is the accumulator alone, or a linear combination with alpha = 1 and beta = 0.
bool stores_accumulator(const GemmView& view);

/// The number of arithmetic operations: 2*m*n*k for each matrix of the batch. If there are groups, it is that of the
/// expected sizes or, if nothing is expected, of a problem that uses its capacity.
double operations(const GemmView& view);

}  // namespace tilewright::op
