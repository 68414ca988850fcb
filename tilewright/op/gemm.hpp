// The problem D = epilogue(A * B, C): operands, scalars, types. What to compute, not how.
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
  Tensor a;  // (m, k), or a batch of them
  Tensor b;  // (k, n), or a batch
  Tensor c;  // (m, n), or a batch; read only where the epilogue reads it and its gate (beta) is not 0: else may be none
  Tensor d;  // (m, n), or (m, n/2) of an epilogue that pairs columns, or a batch; an input without a batch, or with a
             // batch of 1 or of stride 0, serves all of D's
  double alpha = 1.0;
  double beta = 0.0;
  DType accumulator = DType::f32;
  MathOperation math = MathOperation::multiply_add;
  Epilogue epilogue = linear_combination();
  /// What the epilogue reads and writes beside C and D, in any order: (m, n), (1, n), (m, 1) or (1, 1) as its nodes
  /// say, or a batch of them; any strides.
  std::vector<NamedTensor> tensors = {};

  /// The tensor of that name. @pre it is there: validate() has seen it
  const Tensor& tensor(std::string_view name) const;
  std::int64_t m() const { return a.rows(); }
  std::int64_t n() const { return b.columns(); }
  /// n, or where the epilogue pairs columns half of it: C's and D's.
  std::int64_t d_columns() const { return n() / epilogue.columns_per_element(); }
  std::int64_t k() const { return a.columns(); }
  std::int64_t batch() const { return d.batch(); }
  /// Whether D has no elements, so that there is nothing to compute.
  bool is_empty() const { return m() == 0 || n() == 0 || batch() == 0; }

  bool operator==(const Gemm&) const = default;
};

/// The accumulator that a type of A has unless told otherwise: f64 for f64, s32 for integers, f32 for the rest.
DType default_accumulator(DType a);

/// The type of D unless told otherwise: s32 for integers, bf16 for 8-bit floats, whose range few sums fit, A's for the
/// rest.
DType default_output(DType a);

/// The compute type of an epilogue unless told otherwise: f64 for f64; s32 where s32 is accumulated and stored, so that
/// no sum is rounded; f32 for the rest.
DType default_compute(DType accumulator, DType d);

/// Whether this call reads C: the epilogue has a source and its gate is not 0.
bool reads_source(const Gemm& gemm);

/// Whether this call reads A and B: k is not 0 and neither is the accumulator's gate (alpha).
bool reads_product(const Gemm& gemm);

/// Whether the problem's tensors are shapes without memory: it can be planned, compiled and prepared, and not run.
bool is_shape(const Gemm& gemm);

/// Says what is wrong with the problem itself, whatever the kernel: ranks, extents, strides, types, null pointers that
/// would be used, overlap of D with an input (from its first element to its last), of D's matrices with each other,
/// batches that differ, operands on different devices, scalars that the compute type lacks.
/// Accepts m, n, k and batches of 0. C may be the very same matrix, or batch, as D.
Support validate(const Gemm& gemm);

/// The part of validate() that looks at element, accumulator and math types only.
Support check_types(const Gemm& gemm);

/// Its operands, A, B, C, D first, then the epilogue's tensors in the problem's order.
std::vector<Slot> operands(Gemm& gemm);
std::vector<ConstSlot> operands(const Gemm& gemm);

/// describe(view(gemm)): see gemm_view.hpp. @pre validate(gemm)
GemmDescription describe(const Gemm& gemm);

/// The same problem transposed: D' = B' * A'. A column-major D becomes row-major.
Gemm transposed(const Gemm& gemm);

/// Matrix `index` of every operand, as a problem of its own. @pre validate(gemm)
Gemm slice(const Gemm& gemm, std::int64_t index);

/// Floating-point or integer operations: 2*m*n*k for each matrix of the batch.
double operations(const Gemm& gemm);

}  // namespace tilewright::op
