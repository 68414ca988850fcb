// A contraction of two tensors, as an einsum writes it: D[abef] = sum over c and d of A[abcd] * B[dcef].
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/op/gemm.hpp"
#include "tilewright/op/gemm_view.hpp"

namespace tilewright::op {

/// D = epilogue(A * B, C), summed over the modes that D lacks. Each mode of a tensor has a name of one letter; equal
/// letters are equal modes. The modes are classified by the operands that have them:
///   batch: A, B and D;  m: A and D;  n: B and D;  k: not D.
/// A mode of k that only one of A and B has is summed as if the other operand repeated its elements along it.
struct Contraction {
  Tensor a, b;
  Tensor c;  // like D; may be absent unless the epilogue reads it and its gate (beta) is not 0
  Tensor d;
  std::string modes_a, modes_b, modes_d;  // a letter for each mode of the tensor
  double alpha = 1.0, beta = 0.0;
  DType accumulator = DType::f32;
  MathOperation math = MathOperation::multiply_add;
  Epilogue epilogue = linear_combination();
  /// The auxiliary tensors of the epilogue, in any order, with the modes of D. The extents of modes along which a
  /// tensor is broadcast are 1. A tensor is broadcast along all modes of m, of n and of the batch, or along none of
  /// them.
  std::vector<NamedTensor> tensors = {};

  /// Whether D is empty, so that there is nothing to compute.
  bool is_empty() const { return d.is_empty(); }

  bool operator==(const Contraction&) const = default;
};

/// The modes of A, B and D in "ab,bc->ac". Without "->", D has the letters that occur once, in alphabetical order.
/// Spaces are ignored.
Result<std::array<std::string, 3>> parse_contraction(std::string_view expression);

/// Refuses modes that are no letters, that a tensor has twice, or that only D has, extents that differ, wrong types,
/// strides of D whose elements overlap, and epilogues that pair columns or use the index of a row or column. Accepts
/// empty tensors, and inputs with strides of 0.
Support validate(const Contraction& contraction);

/// The operands: A, B, C, D, then the auxiliary tensors in the problem's order.
std::vector<Operand> operands(Contraction& contraction);
std::vector<ConstOperand> operands(const Contraction& contraction);

/// The contraction that is computed for one whose epilogue reads no C, but a tensor with the modes of D that has
/// several strides in a class: kernels reach C by each of its modes, other tensors by one stride for each class, so
/// that the tensor takes the place of C, and has its gate. Nothing if there is no such tensor, or if C cannot have its
/// type. One tensor at most takes the place. @pre all tensors have the modes of D
std::optional<Contraction> with_folded_tensor_as_source(const Contraction& contraction);

/// The contraction as a GEMM, after with_folded_tensor_as_source(). Modes of one class that follow each other in every
/// tensor are merged. Where each class becomes one stride, the operands are strided; the others are folded. If no
/// operand is folded once a mode of m or n counts as a batch along which the other input repeats, and the modes that
/// stay in m or n have 32 elements or more, it does: every family computes such a GEMM. The order of the modes of a
/// class, which is free, is that of D's strides (for k, that of A's), but begins with a mode that is contiguous in A, B
/// or D, so that kernels find vectors. The view refers to `contraction`. @pre validate(contraction)
GemmView view(const Contraction& contraction);

/// "m = b*a, n = c, k = d*e, batch = 1", each class with its fastest mode first, where merged modes are in parentheses.
std::string classes_text(const Contraction& contraction);

}  // namespace tilewright::op
