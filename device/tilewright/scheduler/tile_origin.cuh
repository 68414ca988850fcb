// A tile of D as schedulers yield it.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// The origin of a tile: its first row and column of D, and the matrix of the batch.
struct TileOrigin {
  int m, n, batch;

  /// Whether the tile belongs to a group, which may end before D does, and whether its K differs from that of others.
  static constexpr bool kHasGroup = false, kDiffersInK = false;
  /// Whether the group has extents, matrices and leading dimensions of its own.
  static constexpr bool kIsIndependent = false;
  /// Whether the rows, or the columns, of D are those of all groups, which follow each other.
  static constexpr bool kStacksM = false, kStacksN = false;
  /// The first row and column of the group, or of the matrix.
  __device__ __forceinline__ int begin_m() const { return 0; }
  __device__ __forceinline__ int begin_n() const { return 0; }
  /// The end of the rows, and of the columns, that the tile may store. D has `m` rows and `n` columns.
  __device__ __forceinline__ int end_m(int m) const { return m; }
  __device__ __forceinline__ int end_n(int n) const { return n; }
  /// The elements of K that are multiplied, of `k`.
  __device__ __forceinline__ int begin_k() const { return 0; }
  __device__ __forceinline__ int extent_k(int k) const { return k; }
  /// The leading dimensions of the operands, of those that the kernel was launched with.
  __device__ __forceinline__ int64_t lda(int64_t ld) const { return ld; }
  __device__ __forceinline__ int64_t ldb(int64_t ld) const { return ld; }
  __device__ __forceinline__ int64_t ldc(int64_t ld) const { return ld; }
  __device__ __forceinline__ int64_t ldd(int64_t ld) const { return ld; }
  /// The coordinate of the matrix of D along the batch mode of its tensor map.
  __device__ __forceinline__ int batch_of_d() const { return batch; }
};

/// A tile of a group whose m or, if kAlongN, n differs from that of other groups. `batch` is the group. If kIsStacked,
/// the groups follow each other in one matrix of D.
template <bool kAlongN, bool kIsStacked>
struct GroupTile : TileOrigin {
  int begin, end;  // of the group's rows or columns in D
  bool is_alone;   // the group has no other tiles, or cluster tiles, along this mode

  static constexpr bool kHasGroup = true;
  static constexpr bool kStacksM = kIsStacked && !kAlongN, kStacksN = kIsStacked && kAlongN;
  __device__ __forceinline__ int begin_m() const { return kStacksM ? begin : 0; }
  __device__ __forceinline__ int begin_n() const { return kStacksN ? begin : 0; }
  __device__ __forceinline__ int end_m(int m) const { return kAlongN ? m : end; }
  __device__ __forceinline__ int end_n(int n) const { return kAlongN ? end : n; }
  __device__ __forceinline__ int batch_of_d() const { return kIsStacked ? 0 : batch; }
};

/// A tile of a group whose k differs from that of other groups.
struct GroupKTile : TileOrigin {
  int k_begin, k_end;

  static constexpr bool kDiffersInK = true;
  __device__ __forceinline__ int begin_k() const { return k_begin; }
  __device__ __forceinline__ int extent_k(int /*k*/) const { return k_end - k_begin; }
};

/// A tile of a class of D's rows. `batch` is the class, `m` counts its rows.
struct ClassTile : TileOrigin {
  int m_end, k_end;

  static constexpr bool kDiffersInK = true;
  __device__ __forceinline__ int end_m(int /*m*/) const { return m_end; }
  __device__ __forceinline__ int extent_k(int /*k*/) const { return k_end; }
};

/// A tile of a group that has extents, matrices and leading dimensions of its own. `batch` is the group.
struct IndependentTile : TileOrigin {
  int m_end, n_end, k_end;
  bool is_alone;  // the group has no other tiles, or cluster tiles, along M
  int ld_a, ld_b, ld_c, ld_d;

  static constexpr bool kDiffersInK = true, kIsIndependent = true;
  __device__ __forceinline__ int end_m(int /*m*/) const { return m_end; }
  __device__ __forceinline__ int end_n(int /*n*/) const { return n_end; }
  __device__ __forceinline__ int extent_k(int /*k*/) const { return k_end; }
  __device__ __forceinline__ int64_t lda(int64_t /*ld*/) const { return ld_a; }
  __device__ __forceinline__ int64_t ldb(int64_t /*ld*/) const { return ld_b; }
  __device__ __forceinline__ int64_t ldc(int64_t /*ld*/) const { return ld_c; }
  __device__ __forceinline__ int64_t ldd(int64_t /*ld*/) const { return ld_d; }
};

}  // namespace tilewright
