// The problem D = epilogue(sum over p of parts[p], C): the second half of split-K in parallel mode, as an operation of
// its own. Each part is a matrix of partial sums that another kernel has written.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/op/gemm_view.hpp"

namespace tilewright::op {

/// The parts are summed in the accumulator type in ascending order, beginning with 0, so that the result does not
/// depend on the kernel. s32 wraps.
struct ReduceSplitK {
  Tensor parts;  // (count, m, n), or (m, n) if there is one part: f64, f32, f16, bf16 or s32
  Tensor c;      // like d; may be absent unless the epilogue reads it and its gate (beta) is not 0
  Tensor d;      // (m, n), or (m, n/2) if the epilogue pairs columns; a single matrix
  double alpha = 1.0;
  double beta = 0.0;
  DType accumulator = DType::f32;
  /// Its accumulator is the sum of the parts. alpha = 0 means that the parts are not read.
  Epilogue epilogue = linear_combination();
  /// The auxiliary tensors of the epilogue, as in Gemm::tensors.
  std::vector<NamedTensor> tensors = {};

  /// The number of parts; 0 gives sums of 0.
  std::int64_t count() const { return parts.batch(); }
  std::int64_t m() const { return parts.rows(); }
  std::int64_t n() const { return parts.columns(); }
  /// Columns of C and D: n, or n/2 if the epilogue pairs columns.
  std::int64_t d_columns() const { return n() / epilogue.columns_per_element(); }
  /// Whether D is empty, so that there is nothing to compute.
  bool is_empty() const { return m() == 0 || n() == 0; }

  bool operator==(const ReduceSplitK&) const = default;
};

/// The accumulator type for parts of type `parts`: f64 for f64, s32 for s32, f32 for the rest.
DType sum_accumulator(DType parts);

/// Whether this call reads C, as in a Gemm.
bool reads_source(const ReduceSplitK& reduction);
/// Whether this call reads the parts: there are some, and the accumulator's gate (alpha) is not 0.
bool reads_parts(const ReduceSplitK& reduction);

/// Refuses what no kernel could compute: pointer arrays and interleaved matrices; for the parts wrong ranks, extents,
/// strides and types; batches of D; and for C, D and the epilogue what validate(const Gemm&) refuses.
Support validate(const ReduceSplitK& reduction);

/// The operands: parts, C, D, then the auxiliary tensors in the problem's order.
std::vector<Operand> operands(ReduceSplitK& reduction);
std::vector<ConstOperand> operands(const ReduceSplitK& reduction);

/// C, D, scalars and epilogue as those of a GEMM with k = count(), for code that serves both. A and B have extents and
/// no memory, so this view is not for kernels. It refers to `reduction`.
GemmView outputs_view(const ReduceSplitK& reduction);

/// Everything in a problem that selects code. The number of parts is an extent.
struct ReduceSplitKSignature {
  TensorSignature parts, c, d;  // the alignment of the parts also divides the distance from one part to the next
  DType accumulator = DType::f32;
  Epilogue epilogue = linear_combination();
  std::vector<EpilogueTensorSignature> tensors = {};  // as in GemmSignature
  bool has_c = true;                                  // false: the kernel has no code that reads C, and `c` equals `d`

  bool operator==(const ReduceSplitKSignature&) const = default;
};

/// The signature of the problem. @pre validate(reduction)
ReduceSplitKSignature describe(const ReduceSplitK& reduction);

/// Refuses a signature that no valid problem has. Accepts every result of describe().
Support validate(const ReduceSplitKSignature& signature);

/// The signature of the problem whose matrices are all transposed. @pre the epilogue does not pair columns
ReduceSplitKSignature transposed(const ReduceSplitKSignature& signature);

/// C, D and the epilogue as those of a GEMM, for code that serves both. A and B stand for nothing.
GemmSignature outputs_signature(const ReduceSplitKSignature& signature);

/// The number of additions.
double operations(const ReduceSplitK& reduction);

}  // namespace tilewright::op
