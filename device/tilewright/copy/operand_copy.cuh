// The operand path with cp.async: copies one operand's tile from global to swizzled shared memory, with zeros outside
// the matrix. An operand that is aligned to less than 4 bytes, which is the least that cp.async moves, is copied
// element by element through registers.
//
// A tile consists of lines of `kContiguous` elements. A K-major operand's lines run along K, an MN-major one's along M
// or N.
#pragma once

#include "tilewright/copy/gathered_vectors.cuh"
#include "tilewright/copy/strided_vectors.cuh"
#include "tilewright/operand/matrix_parameters.cuh"
#include "tilewright/operand/swizzle.cuh"
#include "tilewright/ptx/another_register.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The elements of a thread on their way through registers, one for each of kPasses passes; each has kBytes bytes. They
/// are loaded when the copy of a tile begins and stored when it ends, so that the instructions that multiply in between
/// hide the latency of the loads.
template <int kBytes, int kPasses>
class ElementsOnTheirWay {
  static_assert(kBytes == 1 || kBytes == 2, "cp.async moves wider elements");

 public:
  __device__ __forceinline__ void load(int pass, const void* from, bool is_inside) {
    values_[pass] = 0;
    if constexpr (kBytes == 1) {
      ptx::load_global_b8_if(is_inside, values_[pass], from);
    } else {
      ptx::load_global_b16_if(is_inside, values_[pass], from);
    }
  }
  __device__ __forceinline__ void store(int pass, uint32_t to) const {
    ptx::store_shared(to, static_cast<Select<kBytes == 1, uint8_t, uint16_t>>(values_[pass]));
  }

 private:
  uint16_t values_[kPasses];
};

/// What OperandCopy keeps if it uses cp.async.
struct NothingOnItsWay {};

/// Whether cp.async copies the vectors of an operand.
template <class Operand>
inline constexpr bool kIsCopiedAsync = Operand::kAlignmentBytes >= 4;

template <class Operand>
using OnTheirWay = Select<kIsCopiedAsync<Operand>, NothingOnItsWay,
                          ElementsOnTheirWay<minimum(Operand::kAlignmentBytes, 2), Operand::Copy::kPasses>>;

/// Operand: Element, Matrix (StridedMatrix, Im2colMatrix or FoldedMatrix), kIsKMajor, kIsInterleaved (then passes and
/// tiles begin at blocks of K), kContiguous, kTileBytes, kAlignmentBytes (of a vector; 1 or 2: of a single element),
/// kSwizzledBits, and Copy: kPasses, kActiveThreads, kLineStep, the coordinates line(thread), element(thread),
/// pass_line(pass), pass_element(pass), and the places in bytes place(thread) and pass_place(pass). A thread's
/// coordinate in a pass, and its place, are the sums of the two; see plan::TileCopy.
template <class Operand, int kThreads>
class OperandCopy {
  using Element = typename Operand::Element;
  using Matrix = typename Operand::Matrix;
  using Copy = typename Operand::Copy;
  static constexpr int kElementBytes = sizeof(Element);
  static constexpr int kVectorBytes = Operand::kAlignmentBytes;
  static constexpr int kVector = kVectorBytes / kElementBytes;
  static constexpr int kPasses = Copy::kPasses;
  static constexpr int kLines = Operand::kTileBytes / (Operand::kContiguous * kElementBytes);
  static constexpr int kTileK = Operand::kIsKMajor ? Operand::kContiguous : kLines;
  static constexpr bool kIsAsync = kIsCopiedAsync<Operand>;
  static constexpr bool kIsStrided = is_same<Matrix, StridedMatrix>;
  using Vectors = Select<kIsStrided, StridedVectors<Operand, kVector, kTileK, Operand::kContiguous>,
                         GatheredVectors<Operand, kVector, kTileK>>;
  /// Whether the tile is so narrow that it may cover the whole matrix along M or N. The matrix's lines then follow each
  /// other in memory, and all CTAs read them at the same time from one or two slices of L2: 916 CTAs that copied lines
  /// of 16 bytes took 15.1 us, and 6.5 us through L1, which the CTAs of an SM share (f16 8x29280x96, H200, 2026-11-26).
  /// L1 costs 5 to 30 % for lines that no other CTA of the SM reads.
  static constexpr int kNarrowBytes = 64;
  static constexpr bool kIsNarrow =
      kIsStrided && !Operand::kIsKMajor && kVectorBytes == 16 && Operand::kContiguous * kElementBytes <= kNarrowBytes;

 public:
  /// The matrix has leading dimension `ld`, or is reached as `reach` says. `begin_k` is where the first tile begins,
  /// `mn` the first row or column of the tiles, `mn_extent` the matrix's extent along the same mode.
  __device__ __forceinline__ OperandCopy(const Element* matrix, int64_t ld, const Matrix& reach, int begin_k, int mn,
                                         int mn_extent, int thread)
      : vectors_(matrix, ld, reach, begin_k, mn, mn_extent, thread),
        shared_(Copy::place(thread)),
        is_active_(Copy::kActiveThreads == kThreads || thread < Copy::kActiveThreads),
        keeps_in_l1_(kIsNarrow && mn_extent <= Operand::kContiguous) {}

  /// Issues part `kShare` of `kShares` of the copy of the next tile along K to `tile`, a shared address. `k_left`
  /// elements of K are left; what lies behind them becomes zero, which is everything where k_left is not positive.
  /// There are no branches, so that the compiler can interleave the copies with the instructions that multiply. The
  /// first part loads all elements that go through registers.
  template <int kShare, int kShares>
  __device__ __forceinline__ void start(uint32_t tile, int k_left) {
    constexpr int kFirst = kIsAsync ? kPasses * kShare / kShares : 0;
    constexpr int kEnd = kIsAsync ? kPasses * (kShare + 1) / kShares : kShare == 0 ? kPasses : 0;
#pragma unroll
    for (int pass = kFirst; pass < kEnd; ++pass) {
      if constexpr (!kIsAsync) {
        const auto [from, is_inside] = single_element(pass, k_left);
        on_their_way_.load(pass, from, is_active_ && is_inside);
      } else if constexpr (kIsStrided) {
        const bool is_copied = is_active_ && !vectors_.splits_vectors(k_left);
        copy_or_zeros(place(tile, pass), vectors_.from(pass), vectors_.is_inside(pass, k_left), is_copied);
      } else {
        const auto [from, count] = vectors_.source(pass, k_left);
        if (is_active_) ptx::cp_async_zfill<kVectorBytes>(place(tile, pass), from, count * kElementBytes);
      }
    }
  }

  /// Stores the elements that start() has loaded to the same tile. With cp.async, issues the copies of a tile that
  /// splits vectors, which start() leaves out.
  __device__ __forceinline__ void finish(uint32_t tile, int k_left) const {
    if constexpr (!kIsAsync) {
      if (!is_active_) return;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) on_their_way_.store(pass, place(tile, pass));
    } else if constexpr (kIsStrided) {
      if (vectors_.splits_vectors(k_left)) copy_with_split_vectors(tile, k_left);
    }
  }

  /// Moves to the next tile.
  __device__ __forceinline__ void advance() { vectors_.advance(); }

 private:
  struct SingleElement {
    const Element* from;
    bool is_inside;
  };
  __device__ __forceinline__ SingleElement single_element(int pass, int k_left) const {
    if constexpr (kIsStrided) {
      return {vectors_.from(pass), vectors_.is_inside(pass, k_left)};
    } else {
      const auto [from, count] = vectors_.source(pass, k_left);
      return {from, count != 0};
    }
  }

  __device__ __forceinline__ uint32_t place(uint32_t tile, int pass) const {
    return tile + moved<Operand::kSwizzledBits>(shared_, Copy::pass_place(pass));
  }

  __device__ __forceinline__ void copy_or_zeros(uint32_t to, const Element* from, bool is_inside,
                                                bool is_copied) const {
    ptx::cp_async_or_zeros<kVectorBytes>(to, from, is_inside, is_copied && !keeps_in_l1_);
    if constexpr (kIsNarrow) {
      ptx::cp_async_or_zeros<kVectorBytes, true>(to, from, is_inside, is_copied && keeps_in_l1_);
    }
  }

  /// Unrolled, ptxas would not branch around this loop: all tiles would execute its copies, predicated. The number of
  /// the pass is hidden, because ptxas 13.0 let the loop of B begin at the place where that of A had ended (f16
  /// 300x512x1001 with leading dimensions of 1008, tiles of 64x128x64 and a split-K of 6).
  __device__ __forceinline__ void copy_with_split_vectors(uint32_t tile, int k_left) const {
#pragma unroll 1
    for (int i = 0; i < kPasses; ++i) {
      const int pass = ptx::unknown(i);
      const int valid_bytes = vectors_.count(pass, k_left) * kElementBytes;
      if (is_active_) ptx::cp_async_zfill<kVectorBytes>(place(tile, pass), vectors_.from(pass), valid_bytes);
    }
  }

  Vectors vectors_;
  uint32_t shared_;  // this thread's swizzled offset within a tile
  bool is_active_;
  bool keeps_in_l1_;  // the copies go through L1
  [[no_unique_address]] OnTheirWay<Operand> on_their_way_;
};

}  // namespace tilewright
