// The problem D = epilogue(A * B, C): operands, scalars and types, independent of any kernel.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/op/gemm_signature.hpp"
#include "tilewright/op/named_epilogue.hpp"
#include "tilewright/op/operand.hpp"
#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

struct Gemm {
  // Each of A, B, C and D may be a pointer array.
  Tensor a;  // (m, k), or a batch of them
  Tensor b;  // (k, n), or a batch
  Tensor c;  // like d; may be absent unless the epilogue reads it and its gate (beta) is not 0
  Tensor d;  // (m, n), or (m, n/2) if the epilogue pairs columns, or a batch; an input without a batch mode, or with
             // batch count 1 or batch stride 0, is broadcast over D's batch
  double alpha = 1.0;
  double beta = 0.0;
  DType accumulator = DType::f32;
  MathOperation math = MathOperation::multiply_add;
  Epilogue epilogue = linear_combination();
  /// The auxiliary tensors of the epilogue, in any order: (m, n), (1, n), (m, 1) or (1, 1), or batches of these, with
  /// any strides.
  std::vector<NamedTensor> tensors = {};

  /// The auxiliary tensor of that name. @pre validate(*this)
  const Tensor& tensor(std::string_view name) const;
  std::int64_t m() const { return a.rows(); }
  std::int64_t n() const { return b.columns(); }
  /// Columns of C and D: n, or n/2 if the epilogue pairs columns.
  std::int64_t d_columns() const { return n() / epilogue.columns_per_element(); }
  std::int64_t k() const { return a.columns(); }
  std::int64_t batch() const { return d.batch(); }
  /// Whether D is empty, so that there is nothing to compute.
  bool is_empty() const { return m() == 0 || n() == 0 || batch() == 0; }

  bool operator==(const Gemm&) const = default;
};

/// The default accumulator type for operands of type `a`: f64 for f64, s32 for integers, f32 for the rest.
DType default_accumulator(DType a);

/// The default type of D for operands of type `a`: s32 for integers, bf16 for 8-bit floats, whose range is too small
/// for most sums, and `a` for the rest.
DType default_output(DType a);

/// The default compute type of an epilogue: f64 for f64; s32 if both accumulator and D are s32, so that no sum is
/// rounded; f32 for the rest.
DType default_compute(DType accumulator, DType d);

/// Whether this call reads C: the epilogue uses it and its gate (beta) is not 0.
bool reads_source(const Gemm& gemm);

/// Whether this call reads A and B: neither k nor the accumulator's gate (alpha) is 0.
bool reads_product(const Gemm& gemm);

/// Whether the tensors have shapes but no memory. Such a problem can be planned, compiled and prepared, but not run.
bool is_shape_only(const Gemm& gemm);

/// Refuses problems that no kernel could compute: wrong ranks, extents, strides or types, null pointers of operands
/// that are read or written, a span of D that overlaps an input's, overlapping matrices of D, batch counts that differ,
/// operands on different devices, and scalars out of the compute type's range.
/// Accepts m, n, k and batch counts of 0. C may be identical to D. The addresses in a pointer array are not read: that
/// they are null or less aligned than declared, or that matrices of D overlap each other or an input, is not found.
Support validate(const Gemm& gemm);

/// The part of validate() that does not concern batches, memory and auxiliary tensors: the matrices, their types and
/// extents, and the epilogue.
Support check_matrices(const Gemm& gemm);

/// The part of validate() that checks element, accumulator and math types.
Support check_types(const Gemm& gemm);

/// The operands: A, B, C, D, then the auxiliary tensors in the problem's order.
std::vector<Operand> operands(Gemm& gemm);
std::vector<ConstOperand> operands(const Gemm& gemm);

/// describe(view(gemm)): see gemm_view.hpp. @pre validate(gemm)
GemmSignature describe(const Gemm& gemm);

/// The transposed problem, D' = B' * A'. A column-major D becomes row-major.
Gemm transposed(const Gemm& gemm);

/// The single-matrix problem at `index` of the batch. @pre validate(gemm)
Gemm slice(const Gemm& gemm, std::int64_t index);

/// The number of arithmetic operations: 2*m*n*k for each matrix of the batch.
double operations(const Gemm& gemm);

}  // namespace tilewright::op
