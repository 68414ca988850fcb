// Copies one operand's tile from global to shared memory for CUDA cores. In shared memory M or N is contiguous, and
// elements have the type in which products are computed. Elements that are stored unchanged, have 4 bytes or more and
// are MN-major are copied by cp.async. Others go through registers, where they are converted, and K-major vectors are
// transposed by the stores: a cp.async of single elements takes as long as one of 16 bytes. A thread loads these
// registers from global memory. For a staged operand it loads them from shared memory, where it has copied its vectors
// by cp.async some tiles earlier, so that no warp waits for global memory.
#pragma once

#include "tilewright/copy/gathered_vectors.cuh"
#include "tilewright/copy/strided_vectors.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/matrix_parameters.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Operand: Element, Stored (type in shared memory), Matrix (StridedMatrix, Im2colMatrix or FoldedMatrix), kIsKMajor,
/// kIsInterleaved (then tiles begin at blocks of K), kTileK, kVector (elements that a thread moves at once along the
/// contiguous mode of global memory), kElementStep (from one of them to the next in shared memory), kIsAsync,
/// kIsStaged, and Copy: kPasses, kActiveThreads, kLineStep, the coordinates line(thread), element(thread),
/// pass_line(pass), pass_element(pass), and the places in elements place(thread) and pass_place(pass). A thread's
/// coordinate in a pass, and its place, are the sums of the two; see plan::TileCopy.
///
/// A tile is copied by copy_async(), or by load() and, when its elements have arrived, store(); then advance() moves to
/// the next tile along K. A tile of a staged operand is copied by stage_async() and, when this thread has waited for
/// that, by load_staged() and store(). In all of them, `k_left` elements of K are left; elements after these, or
/// outside the matrix along M or N, become zero.
template <class Operand, int kThreads>
class PanelCopy {
  using Element = typename Operand::Element;
  using Stored = typename Operand::Stored;
  using Copy = typename Operand::Copy;
  static constexpr int kVector = Operand::kVector;
  static constexpr int kElementBytes = sizeof(Element), kVectorBytes = kVector * kElementBytes;
  static constexpr bool kIsPartial = Copy::kActiveThreads < kThreads;
  static_assert(!kIsPartial || Copy::kPasses == 1, "all threads take part in several passes");
  static_assert(!Operand::kIsAsync || !Operand::kIsKMajor, "cp.async does not transpose");
  static_assert(!Operand::kIsAsync || !Operand::kIsStaged);
  using Matrix = typename Operand::Matrix;
  static constexpr bool kIsStrided = is_same<Matrix, StridedMatrix>;
  using Vectors = Select<
      kIsStrided,
      StridedVectors<Operand, kVector, Operand::kTileK, Operand::kIsKMajor ? Operand::kTileK : Operand::kLineElements>,
      GatheredVectors<Operand, kVector, Operand::kTileK>>;

 public:
  /// Number of passes that load() or load_staged(), and store(), take; 0 if the operand is copied by copy_async().
  static constexpr int kRegisterPasses = Operand::kIsAsync ? 0 : Copy::kPasses;
  /// The vectors that all threads stage for a tile: those of each pass one after another.
  static constexpr int kStagedVectors = Operand::kIsStaged ? Copy::kPasses * Copy::kActiveThreads : 0;
  using StagedVector = Vector<Element, kVector>;

  /// The matrix has leading dimension `ld`, or is reached as `reach` says. `begin_k` is where the first tile begins
  /// along K, `mn` the first row or column of the tiles, `mn_extent` the matrix's extent along the same mode.
  __device__ __forceinline__ PanelCopy(const Element* matrix, int64_t ld, const Matrix& reach, int begin_k, int mn,
                                       int mn_extent, int thread)
      : place_(Copy::place(thread)),
        is_active_(!kIsPartial || thread < Copy::kActiveThreads),
        vectors_(matrix, ld, reach, begin_k, mn, mn_extent, thread) {}

  /// Issues the cp.async instructions for the tile. Does nothing for an operand that goes through registers.
  __device__ __forceinline__ void copy_async(Stored* tile, int k_left) const {
    if constexpr (Operand::kIsAsync) {
      const uint32_t to = ptx::shared_address(tile + place_);
      copy_vectors(k_left, [to](int pass) { return to + Copy::pass_place(pass) * kElementBytes; });
    }
  }

  /// Issues the cp.async instructions for this thread's vectors of a tile, and moves to the next tile. `to` is where
  /// the tile's kStagedVectors begin. Does nothing for an operand that is not staged.
  __device__ __forceinline__ void stage_async(StagedVector* to, int k_left) {
    if constexpr (Operand::kIsStaged) {
      const uint32_t own = ptx::shared_address(to + ptx::thread());
      copy_vectors(k_left, [own](int pass) { return own + pass * Copy::kActiveThreads * kVectorBytes; });
      vectors_.advance();
    }
  }

  /// Loads the vectors that this thread has staged for the passes from `first` to `last` - 1. The bounds may exceed the
  /// number of passes.
  __device__ __forceinline__ void load_staged(const StagedVector* from, int first, int last) {
    if (!is_active_) return;
#pragma unroll
    for (int pass = 0; pass < kRegisterPasses; ++pass) {
      if (pass >= first && pass < last) registers_[pass] = from[ptx::thread() + pass * Copy::kActiveThreads];
    }
  }

  /// Loads what the passes from `first` to `last` - 1 copy to registers. The bounds may exceed the number of passes.
  __device__ __forceinline__ void load(int k_left, int first, int last) {
    if constexpr (kIsStrided && Operand::kIsKMajor && kVector > 1) {
      if (k_left >= Operand::kTileK) return load_whole(first, last);
    }
#pragma unroll
    for (int pass = 0; pass < kRegisterPasses; ++pass) {
      if (pass < first || pass >= last) continue;
      const auto [from, count] = source(pass, k_left);
      registers_[pass] = {};
      if (count == kVector) {
        registers_[pass] = vector_at(from);
      } else if constexpr (kVector > 1) {
        // Only the last vectors of a line come here. Unrolled, this loop would cost the mainloop registers.
#pragma unroll 1
        for (int i = 0; i < count; ++i) {
          const Element element = from[i];
#pragma unroll
          for (int j = 0; j < kVector; ++j) {
            if (j == i) registers_[pass].element[j] = element;
          }
        }
      }
    }
  }

  /// Stores what load() has loaded in these passes, converted, to the tile.
  __device__ __forceinline__ void store(Stored* tile, int first, int last) const {
    if (!is_active_) return;
    Stored* const to = tile + place_;
#pragma unroll
    for (int pass = 0; pass < kRegisterPasses; ++pass) {
      if (pass < first || pass >= last) continue;
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        to[Copy::pass_place(pass) + i * Operand::kElementStep] = convert<Stored>(registers_[pass].element[i]);
    }
  }

  /// Moves to the next tile; a staged operand has been moved by stage_async().
  __device__ __forceinline__ void advance() {
    if constexpr (!Operand::kIsStaged) vectors_.advance();
  }

 private:
  /// Issues a cp.async for this thread's vector in each pass, to place(pass). cp_async_or_zeros() takes fewer
  /// instructions, but kernels of f32 took 1 % longer with it (H200, 2026-11-27).
  template <class Place>
  __device__ __forceinline__ void copy_vectors(int k_left, const Place& place) const {
#pragma unroll
    for (int pass = 0; pass < Copy::kPasses; ++pass) {
      const auto [from, count] = source(pass, k_left);
      if (is_active_) ptx::cp_async_zfill<kVectorBytes>(place(pass), from, count * kElementBytes);
    }
  }

  /// load() of a tile that ends before the end of K, so that each vector is inside the matrix or its line is not.
  __device__ __forceinline__ void load_whole(int first, int last) {
#pragma unroll
    for (int pass = 0; pass < kRegisterPasses; ++pass) {
      if (pass < first || pass >= last) continue;
      registers_[pass] = {};
      if (is_active_ && vectors_.has_line(pass, Operand::kTileK)) registers_[pass] = vector_at(vectors_.from(pass));
    }
  }

  static __device__ __forceinline__ Vector<Element, kVector> vector_at(const Element* from) {
    return *reinterpret_cast<const Vector<Element, kVector>*>(from);
  }

  struct Source {
    const Element* from;
    int count;  // elements of the vector that are inside the matrix
  };
  /// This thread's vector in `pass`.
  __device__ __forceinline__ Source source(int pass, int k_left) const {
    if constexpr (kIsStrided) {
      return {vectors_.from(pass), is_active_ ? vectors_.count(pass, k_left) : 0};
    } else {
      const auto [from, count] = vectors_.source(pass, k_left);
      return {from, is_active_ ? count : 0};
    }
  }

  uint32_t place_;  // of this thread's element in pass 0 in a tile
  bool is_active_;
  Vectors vectors_;
  Vector<Element, kVector> registers_[Operand::kIsAsync ? 1 : Copy::kPasses];
};

}  // namespace tilewright
