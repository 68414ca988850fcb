// The part of a kernel's parameters that says how an operand is reached in global memory.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// A matrix whose rows or columns are one stride apart.
struct StridedMatrix {};

/// How operand kRole ('A', 'B', 'C' or 'D') is reached, by a StridedMatrix, Im2colMatrix or FoldedMatrix: nothing for a
/// strided matrix. Members of different operands have different types, because two empty members of one type would take
/// a byte.
template <class Matrix, char kRole>
struct MatrixParameters {
  Matrix matrix;
};
template <char kRole>
struct MatrixParameters<StridedMatrix, kRole> {};

template <class Matrix, char kRole>
__device__ __forceinline__ const Matrix& matrix_of(const MatrixParameters<Matrix, kRole>& parameters) {
  return parameters.matrix;
}
template <char kRole>
__device__ __forceinline__ StridedMatrix matrix_of(const MatrixParameters<StridedMatrix, kRole>& /*parameters*/) {
  return {};
}

}  // namespace tilewright
