// A tensor other than C and D that an epilogue reads or writes.
#pragma once

#include "tilewright/numeric/convert.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The position of the values that a thread passes to an epilogue, which are adjacent in a row. The first is at (row,
/// column) of matrix `batch` of the problem as computed, which has `m` rows and `n` columns.
struct EpiloguePlace {
  int row, column, batch;
  int m, n;
  bool is_inside = false;  // the elements are known to lie inside D; a constant, so that no code compares them

  /// Loads the elements of `tensor` here. kNumber is its number if it is a vector.
  template <int kNumber, class Tensor, class Compute, int kCount>
  __device__ __forceinline__ void load(const Tensor& tensor, Compute (&values)[kCount]) const {
    tensor.load(values, *this);
  }
};

/// The stride of a tensor along one mode of the problem.
enum class Along {
  none,        // stride 0: one element is broadcast
  contiguous,  // stride 1
  strided,
};

/// kM and kN describe the strides along M and N. If kN is `contiguous`, the tensor's rows are aligned to kAlignment
/// elements, a power of two.
template <class Element, Along kM, Along kN, int kAlignment>
struct EpilogueTensor {
  const void* address;
  int64_t stride_m, stride_n, batch_stride;  // elements
  static constexpr bool kIsRowVector = kM == Along::none && kN != Along::none;
  static constexpr bool kIsColumnVector = kM != Along::none && kN == Along::none;

  /// Loads kCount adjacent elements of a row, and zeros outside the tensor. at.column must be a multiple of kCount.
  template <class Compute, int kCount>
  __device__ __forceinline__ void load(Compute (&values)[kCount], const EpiloguePlace& at) const {
    const Element* const line = this->line(at);
    if constexpr (kN == Along::none) {
      const Compute value = has_row(at) ? convert<Compute>(*line) : Compute(0);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = value;
      return;
    }
    constexpr int kVector = kN == Along::contiguous ? minimum(kCount, kAlignment) : 1;
#pragma unroll
    for (int first = 0; first < kCount; first += kVector) {
      Vector<Element, kVector> read{};
      const int column = at.column + first;
      if (has_row(at) && column + kVector <= at.n) {
        read = *reinterpret_cast<const Vector<Element, kVector>*>(line + offset(column));
      } else if (has_row(at)) {
#pragma unroll
        for (int i = 0; i < kVector - 1; ++i) {
          if (column + i < at.n) read.element[i] = line[offset(column + i)];
        }
      }
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[first + i] = convert<Compute>(read.element[i]);
    }
  }

  /// Rounds kCount adjacent elements of a row to Element and stores those that are inside the tensor. The tensor must
  /// not be broadcast.
  template <class Compute, int kCount>
  __device__ __forceinline__ void store(const Compute (&values)[kCount], const EpiloguePlace& at) const {
    if (at.row >= at.m) return;
    Element* const line = const_cast<Element*>(this->line(at));
    constexpr int kVector = kN == Along::contiguous ? minimum(kCount, kAlignment) : 1;
#pragma unroll
    for (int first = 0; first < kCount; first += kVector) {
      Vector<Element, kVector> written;
#pragma unroll
      for (int i = 0; i < kVector; ++i) written.element[i] = convert<Element>(values[first + i]);
      const int column = at.column + first;
      if (column + kVector <= at.n) {
        *reinterpret_cast<Vector<Element, kVector>*>(line + offset(column)) = written;
      } else {
#pragma unroll
        for (int i = 0; i < kVector - 1; ++i) {
          if (column + i < at.n) line[offset(column + i)] = written.element[i];
        }
      }
    }
  }

  /// Stores one element, which must be inside the tensor. The tensor may be broadcast.
  template <class Compute>
  __device__ __forceinline__ void store_one(Compute value, int row, int column, int batch) const {
    Element* const matrix = static_cast<Element*>(const_cast<void*>(address)) + batch * batch_stride;
    matrix[(kM == Along::none ? 0 : row * stride_m) + (kN == Along::none ? 0 : column * stride_n)] =
        convert<Element>(value);
  }

 private:
  /// A tensor that is broadcast along M is read even for rows outside D, so that the compiler can merge a thread's
  /// loads of one column for all its rows.
  static __device__ __forceinline__ bool has_row(const EpiloguePlace& at) { return kM == Along::none || at.row < at.m; }
  __device__ __forceinline__ const Element* line(const EpiloguePlace& at) const {
    const Element* const matrix = static_cast<const Element*>(address) + at.batch * batch_stride;
    if constexpr (kM == Along::none) return matrix;
    return matrix + (kM == Along::contiguous ? static_cast<int64_t>(at.row) : at.row * stride_m);
  }
  __device__ __forceinline__ int64_t offset(int column) const {
    return kN == Along::contiguous ? static_cast<int64_t>(column) : column * stride_n;
  }
};

}  // namespace tilewright
