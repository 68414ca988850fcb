// A tensor that an epilogue reads or writes beside C and D, at the elements that a thread holds.
#pragma once

#include "tilewright/numeric/convert.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Neighbours in a row of the problem as computed: the first is at (row, column) of matrix `batch`; those at `m` rows
/// or `n` columns and more are outside.
struct EpiloguePlace {
  int row, column, batch;
  int m, n;

  /// What `tensor`, a vector of that number or another, has here.
  template <int kNumber, class Tensor, class Compute, int kCount>
  __device__ __forceinline__ void load(const Tensor& tensor, Compute (&values)[kCount]) const {
    tensor.load(values, *this);
  }
};

/// How a tensor's elements lie along one mode of the problem.
enum class Along {
  none,        // one element serves all
  neighbours,  // stride 1
  strided,
};

/// Elements of kAlignment, a power of two, lie together and aligned along N where kN is neighbours.
template <class Element, Along kM, Along kN, int kAlignment>
struct EpilogueTensor {
  const void* address;
  int64_t stride_m, stride_n, batch_stride;  // elements
  static constexpr bool kIsRowVector = kM == Along::none && kN != Along::none;
  static constexpr bool kIsColumnVector = kM != Along::none && kN == Along::none;

  /// What each of `values` is computed with; zeros outside. The place's column is a multiple of kCount.
  template <class Compute, int kCount>
  __device__ __forceinline__ void load(Compute (&values)[kCount], const EpiloguePlace& at) const {
    const Element* const line = this->line(at);
    if constexpr (kN == Along::none) {
      const Compute value = has_row(at) ? convert<Compute>(*line) : Compute(0);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = value;
      return;
    }
    constexpr int kVector = kN == Along::neighbours ? minimum(kCount, kAlignment) : 1;
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

  /// Rounded to Element; nothing outside. Of a full tensor.
  template <class Compute, int kCount>
  __device__ __forceinline__ void store(const Compute (&values)[kCount], const EpiloguePlace& at) const {
    if (at.row >= at.m) return;
    Element* const line = const_cast<Element*>(this->line(at));
    constexpr int kVector = kN == Along::neighbours ? minimum(kCount, kAlignment) : 1;
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

  /// One element, of any tensor; inside.
  template <class Compute>
  __device__ __forceinline__ void store_one(Compute value, int row, int column, int batch) const {
    Element* const matrix = static_cast<Element*>(const_cast<void*>(address)) + batch * batch_stride;
    matrix[(kM == Along::none ? 0 : row * stride_m) + (kN == Along::none ? 0 : column * stride_n)] =
        convert<Element>(value);
  }

 private:
  /// What serves all rows is there for those outside too: then loads of one column are alike for all rows of a thread.
  static __device__ __forceinline__ bool has_row(const EpiloguePlace& at) { return kM == Along::none || at.row < at.m; }
  __device__ __forceinline__ const Element* line(const EpiloguePlace& at) const {
    const Element* const matrix = static_cast<const Element*>(address) + at.batch * batch_stride;
    if constexpr (kM == Along::none) return matrix;
    return matrix + (kM == Along::neighbours ? static_cast<int64_t>(at.row) : at.row * stride_m);
  }
  __device__ __forceinline__ int64_t offset(int column) const {
    return kN == Along::neighbours ? static_cast<int64_t>(column) : column * stride_n;
  }
};

}  // namespace tilewright
