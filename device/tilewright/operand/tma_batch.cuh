// The matrices of an operand's batch as TMA loads them: with one tensor map for all, or with one for each matrix.
#pragma once

#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/operand/repacked_matrix.cuh"
#include "tilewright/operand/tensor_map_ring.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A pointer array whose matrices TMA loads.
struct TmaPointerArray {
  TmaMatrix map;          // of a matrix whose address is not that of any of the batch
  const void* addresses;  // the array
  int64_t slots;          // offset in the workspace of the tensor maps that CTAs make, in bytes
};

/// Groups that end along K, which is mode kModeOfK of their tensor map. TMA loads them through tensor maps that end
/// where a group does, so that elements of K behind the group are zeros.
template <int kModeOfK>
struct TmaGroupsAlongK {
  TmaMatrix map;  // of the whole matrix, or batch
  int64_t slots;  // offset in the workspace of the tensor maps that CTAs make, in bytes
};

/// A pointer array whose matrices have extents and leading dimensions of their own: A or, unless kIsA, B of independent
/// groups.
template <bool kIsA, bool kIsKMajor, int kElementBytes>
struct TmaIndependentMatrices {
  TmaMatrix map;          // of a matrix that is none of them
  const void* addresses;  // the array
  int64_t slots;          // offset in the workspace of the tensor maps that CTAs make, in bytes
};

/// One tensor map has all matrices; the batch is its third mode. Source: TmaMatrix or RepackedMatrix.
template <class Source, int kSlots>
class TmaBatch {
 public:
  static constexpr bool kMakesMaps = false;

  /// `step` is 0 if one matrix is used for the whole batch, else 1.
  __device__ __forceinline__ TmaBatch(const Source& matrix, int step, uint32_t /*shared*/, char* /*workspace*/)
      : map_(tma_matrix(matrix)), step_(step) {}

  template <class Tile>
  __device__ __forceinline__ void replace(const Tile& /*tile*/) const {}
  __device__ __forceinline__ void publish() const {}
  __device__ __forceinline__ void acquire() const {}
  __device__ __forceinline__ const TmaMatrix& map(int /*batch*/) const { return map_; }
  /// The coordinate of matrix `batch` along the third mode of its map().
  __device__ __forceinline__ int coordinate(int batch) const { return batch * step_; }

 private:
  const TmaMatrix& map_;
  int step_;
};

/// Each matrix has a tensor map, which the warp that issues the loads makes. The members must be called by all lanes.
template <int kSlots>
class TmaBatch<TmaPointerArray, kSlots> {
  using Ring = TensorMapRing<kSlots>;

 public:
  static constexpr bool kMakesMaps = true;

  /// `shared` is the shared address of 128 bytes.
  __device__ __forceinline__ TmaBatch(const TmaPointerArray& matrices, int /*step*/, uint32_t shared, char* workspace)
      : addresses_(matrices.addresses),
        ring_(shared, workspace + matrices.slots + static_cast<int64_t>(blockIdx.x) * Ring::kBytes) {
    if (threadIdx.x < 32) ring_.begin(matrices.map);
  }

  /// The steps before loads of the matrix of `tile`, see TensorMapRing. At least one load must follow before the next
  /// matrix.
  template <class Tile>
  __device__ __forceinline__ void replace(const Tile& tile) {
    ring_.replace(matrix_of_batch<true, const void>(addresses_, 0, tile.batch));
  }
  __device__ __forceinline__ void publish() const { ring_.publish(); }
  __device__ __forceinline__ void acquire() const { ring_.acquire(); }
  __device__ __forceinline__ const TmaMatrix& map(int /*batch*/) const { return ring_.map(); }
  __device__ __forceinline__ int coordinate(int /*batch*/) const { return 0; }

 private:
  const void* addresses_;
  Ring ring_;
};

/// The same for each group that ends along K. The groups are stacked in one matrix, or the third mode is theirs.
template <int kModeOfK, int kSlots>
class TmaBatch<TmaGroupsAlongK<kModeOfK>, kSlots> {
  using Ring = TensorMapRing<kSlots>;

 public:
  static constexpr bool kMakesMaps = true;

  __device__ __forceinline__ TmaBatch(const TmaGroupsAlongK<kModeOfK>& matrix, int step, uint32_t shared,
                                      char* workspace)
      : step_(step), ring_(shared, workspace + matrix.slots + static_cast<int64_t>(blockIdx.x) * Ring::kBytes) {
    if (threadIdx.x < 32) ring_.begin(matrix.map);
  }

  template <class Tile>
  __device__ __forceinline__ void replace(const Tile& tile) {
    ring_.template replace_extent<kModeOfK>(max(tile.k_end, 1));  // no extent is 0
  }
  __device__ __forceinline__ void publish() const { ring_.publish(); }
  __device__ __forceinline__ void acquire() const { ring_.acquire(); }
  __device__ __forceinline__ const TmaMatrix& map(int /*batch*/) const { return ring_.map(); }
  __device__ __forceinline__ int coordinate(int batch) const { return batch * step_; }

 private:
  int step_;
  Ring ring_;
};

/// The same for each matrix of independent groups.
template <bool kIsA, bool kIsKMajor, int kElementBytes, int kSlots>
class TmaBatch<TmaIndependentMatrices<kIsA, kIsKMajor, kElementBytes>, kSlots> {
  using Matrices = TmaIndependentMatrices<kIsA, kIsKMajor, kElementBytes>;
  static constexpr int64_t kNoLine = 16;  // bytes; a stride that tensor maps allow
  using Ring = TensorMapRing<kSlots>;

 public:
  static constexpr bool kMakesMaps = true;

  __device__ __forceinline__ TmaBatch(const Matrices& matrices, int /*step*/, uint32_t shared, char* workspace)
      : addresses_(matrices.addresses),
        ring_(shared, workspace + matrices.slots + static_cast<int64_t>(blockIdx.x) * Ring::kBytes) {
    if (threadIdx.x < 32) ring_.begin(matrices.map);
  }

  /// If the group has no K, its matrix may have no address and no leading dimension. Its map has the address of the
  /// array, because TMA accesses that of a map even if all elements of a box lie outside (with a null address the
  /// kernel stopped with an illegal address; H200, driver 580), and one element of K, which must not be loaded.
  /// @pre the group has rows and columns
  template <class Tile>
  __device__ __forceinline__ void replace(const Tile& tile) {
    const int mn = kIsA ? tile.m_end : tile.n_end, k = max(tile.k_end, 1);
    const int64_t line = int64_t{kIsA ? tile.ld_a : tile.ld_b} * kElementBytes;
    const void* const matrix = matrix_of_batch<true, const void>(addresses_, 0, tile.batch);
    ring_.replace_matrix(tile.k_end > 0 ? matrix : aligned(addresses_), kIsKMajor ? k : mn, kIsKMajor ? mn : k,
                         tile.k_end > 0 ? line : kNoLine);
  }
  __device__ __forceinline__ void publish() const { ring_.publish(); }
  __device__ __forceinline__ void acquire() const { ring_.acquire(); }
  __device__ __forceinline__ const TmaMatrix& map(int /*batch*/) const { return ring_.map(); }
  __device__ __forceinline__ int coordinate(int /*batch*/) const { return 0; }

 private:
  /// The address of the array, rounded down to one that a tensor map may have.
  static __device__ __forceinline__ const void* aligned(const void* address) {
    return reinterpret_cast<const void*>(reinterpret_cast<uint64_t>(address) / kNoLine * kNoLine);
  }

  const void* addresses_;
  Ring ring_;
};

/// The tensor map of the kernel's parameters.
template <int kModeOfK>
__device__ __forceinline__ const TmaMatrix& tma_matrix(const TmaGroupsAlongK<kModeOfK>& matrix) {
  return matrix.map;
}
__device__ __forceinline__ const TmaMatrix& tma_matrix(const TmaPointerArray& matrices) { return matrices.map; }
template <bool kIsA, bool kIsKMajor, int kElementBytes>
__device__ __forceinline__ const TmaMatrix& tma_matrix(
    const TmaIndependentMatrices<kIsA, kIsKMajor, kElementBytes>& matrices) {
  return matrices.map;
}

/// A matrix that is not loaded by TMA.
template <int kSlots>
class TmaBatch<GlobalMatrix, kSlots> {
 public:
  static constexpr bool kMakesMaps = false;

  __device__ __forceinline__ TmaBatch(const GlobalMatrix&, int, uint32_t, char*) {}
  template <class Tile>
  __device__ __forceinline__ void replace(const Tile& /*tile*/) const {}
  __device__ __forceinline__ void publish() const {}
  __device__ __forceinline__ void acquire() const {}
};

}  // namespace tilewright
