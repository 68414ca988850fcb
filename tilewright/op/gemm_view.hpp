// Every problem that tensor cores serve, seen as one: D[m,n] = epilogue(sum over k of A[m,k] * B[k,n], C[m,n]) for each
// matrix of a batch. Kernel families, cost models and the reference see this and not the problem it came from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tilewright/op/gemm.hpp"

namespace tilewright::op {

/// One mode of an operand: its coordinates, the first the fastest, as a CuTe layout shape:stride with strides in
/// elements. A mode of a GEMM has one coordinate; one that folds several modes of a tensor has as many.
struct Mode {
  Dims shape;
  Dims stride;

  std::int64_t size() const;
  /// Elements from the operand's first element to index `index` of the mode. @pre 0 <= index < size()
  std::int64_t offset(std::int64_t index) const;
};

/// How a kernel reaches an operand's elements.
enum class OperandAccess : std::uint8_t {
  strided,  // rows, columns and batch have one stride each: OperandView::tensor says all
  folded,   // a mode has several coordinates that no single stride joins
};

/// "strided", "folded"
std::string_view name(OperandAccess access);

struct OperandView {
  Tensor tensor;  // (rows, columns), or (batch, rows, columns); strides hold where access is strided
  OperandAccess access = OperandAccess::strided;
  Mode rows = {}, columns = {};  // where access is folded

  /// A view of a tensor as it is.
  static OperandView of(const Tensor& tensor) { return {.tensor = tensor}; }
  /// A view whose modes fold several coordinates; strided where coordinates coalesce to one stride a mode.
  /// `tensor` gives address, element type and device.
  static OperandView folded(const Tensor& tensor, const Mode& rows, const Mode& columns, std::int64_t batch = 1,
                            std::int64_t batch_stride = 0);

  /// Elements from the first element to (row, column) of the first matrix.
  std::int64_t offset(std::int64_t row, std::int64_t column) const {
    if (access == OperandAccess::strided) return row * tensor.row_stride() + column * tensor.column_stride();
    return rows.offset(row) + columns.offset(column);
  }
};

/// Refers to the problem that it was made from, which must outlive it. Copying it allocates nothing.
struct GemmView {
  OperandView a;  // (m, k)
  OperandView b;  // (k, n)
  OperandView c;  // (m, n), or (m, n/2) of an epilogue that pairs columns; meaningless where reads_source is false
  OperandView d;  // as c
  double alpha = 1.0, beta = 0.0;
  DType accumulator = DType::f32;
  MathOperation math = MathOperation::multiply_add;
  const Epilogue* epilogue = nullptr;         // never null in a view that view() made
  std::span<const NamedTensor> tensors = {};  // the epilogue's, sources and outputs, in any order
  bool has_source = false;     // C is there and the epilogue reads it where beta is not 0: its code is compiled
  bool reads_source = false;   // this call reads C
  bool reads_product = false;  // this call reads A and B
  std::shared_ptr<const void> keeps = nullptr;  // what epilogue and tensors refer to, where that is not the problem

  std::int64_t m() const { return a.tensor.rows(); }
  std::int64_t n() const { return b.tensor.columns(); }
  std::int64_t k() const { return a.tensor.columns(); }
  std::int64_t d_columns() const { return d.tensor.columns(); }
  std::int64_t batch() const { return d.tensor.batch(); }
  bool is_empty() const { return m() == 0 || n() == 0 || batch() == 0; }
  /// The epilogue's tensor of that name. @pre it is there: validate() has seen it
  const Tensor& tensor(std::string_view name) const;
  /// The value of an epilogue scalar in this call.
  double scalar(std::string_view label) const { return scalar_value(*epilogue, label, alpha, beta); }

  /// Refuses operands that are not strided, for kernels that know no other: `family` is named in the reason.
  Support check_strided(std::string_view family) const;
};

/// The view of a GEMM is the GEMM itself. @pre validate(gemm)
GemmView view(const Gemm& gemm);

/// The same problem as a Gemm, for kernels whose authors know no other. @pre view.check_strided() accepted it
Gemm to_gemm(const GemmView& view);

/// What selects code for it: types, layouts and the largest alignments, up to 16 bytes, that pointers, leading
/// dimensions and batch strides allow. A C that is there and not read is described as D. @pre the problem is valid
GemmDescription describe(const GemmView& view);

/// Whether D is A*B and nothing else: by its graph, or as a linear combination of alpha 1 and beta 0.
bool stores_sums(const GemmView& view);

/// Floating-point or integer operations: 2*m*n*k for each matrix of the batch.
double operations(const GemmView& view);

}  // namespace tilewright::op
