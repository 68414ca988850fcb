// The operand path with TMA: copies one operand's tile from global to shared memory, box after box. The CTAs of a
// cluster that need the same tile share the work by multicast.
#pragma once

#include "tilewright/operand/tma_folded.cuh"
#include "tilewright/operand/tma_im2col.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Operand: kIsKMajor, kBoxes, kShares (how many CTAs need the same tile; each of them loads one share of every box and
/// multicasts it to all), and the steps from one box to the next and from one share to the next: kBoxContiguous,
/// kBoxStrided (elements of the matrix), kBoxBytes (of shared memory), kShareContiguous, kShareStrided, kShareBytes.
template <class Operand, class Source = typename Operand::Source>
class TmaOperand {
 public:
  /// `share` is the one that this CTA loads, `ctas` the mask of the CTAs that need the tile.
  __device__ __forceinline__ TmaOperand(const TmaMatrix& map, int share, uint16_t ctas, ptx::CachePolicy policy)
      : map_(map), policy_(policy), share_(share), ctas_(ctas) {}

  /// Issues this CTA's loads of the tile at (mn, k) of matrix `batch`.
  __device__ __forceinline__ void load(uint32_t to, uint32_t barrier, int mn, int k, int batch) const {
    const int contiguous = (Operand::kIsKMajor ? k : mn) + share_ * Operand::kShareContiguous;
    const int strided = (Operand::kIsKMajor ? mn : k) + share_ * Operand::kShareStrided;
    const uint32_t part = to + share_ * Operand::kShareBytes;
#pragma unroll(kUnrolled)
    for (int box = 0; box < Operand::kBoxes; ++box) {
      const uint32_t at = part + box * Operand::kBoxBytes;
      const int x = contiguous + box * Operand::kBoxContiguous;
      const int y = strided + box * Operand::kBoxStrided;
      if constexpr (Operand::kShares > 1) {
        ptx::tma_load_multicast(at, map_, barrier, ctas_, x, y, batch, policy_);
      } else {
        ptx::tma_load(at, map_, barrier, x, y, batch, policy_);
      }
    }
  }

 private:
  // When the loop over six boxes was fully unrolled, a producer of 32 registers spilled their coordinates.
  static constexpr int kUnrolled = Operand::kBoxes <= 4 ? Operand::kBoxes : 2;

  const TmaMatrix& map_;
  ptx::CachePolicy policy_;
  int share_;
  uint16_t ctas_;
};

/// The same for an im2col matrix: the rows of a box are pixels, its columns the channels of a tap.
template <class Operand>
class TmaOperand<Operand, TmaIm2col> {
 public:
  __device__ __forceinline__ TmaOperand(const TmaIm2col& matrix, int share, uint16_t ctas, ptx::CachePolicy policy)
      : matrix_(matrix), policy_(policy), share_(share), ctas_(ctas) {}

  __device__ __forceinline__ void load(uint32_t to, uint32_t barrier, int mn, int k, int batch) const {
    const int column = (Operand::kIsKMajor ? k : mn) + share_ * Operand::kShareContiguous;
    const int row = (Operand::kIsKMajor ? mn : k) + share_ * Operand::kShareStrided;
    const uint32_t part = to + share_ * Operand::kShareBytes;
#pragma unroll 1  // a producer has few registers
    for (int box = 0; box < Operand::kBoxes; ++box) {
      const uint32_t at = part + box * Operand::kBoxBytes;
      const ptx::Im2colBox from =
          matrix_.box(row + box * Operand::kBoxStrided, column + box * Operand::kBoxContiguous, batch);
      if constexpr (Operand::kShares > 1) {
        ptx::tma_load_im2col_multicast(at, matrix_.map, barrier, ctas_, from, policy_);
      } else {
        ptx::tma_load_im2col(at, matrix_.map, barrier, from, policy_);
      }
    }
  }

 private:
  const TmaIm2col& matrix_;
  ptx::CachePolicy policy_;
  int share_;
  uint16_t ctas_;
};

/// The same for the im2col matrix of a class.
template <class Operand, int kClasses>
class TmaOperand<Operand, TmaIm2colClasses<kClasses>> : public TmaOperand<Operand, TmaIm2col> {
  using TmaOperand<Operand, TmaIm2col>::TmaOperand;
};

/// The same for a folded matrix.
template <class Operand>
class TmaOperand<Operand, TmaFolded> {
 public:
  __device__ __forceinline__ TmaOperand(const TmaFolded& matrix, int share, uint16_t ctas, ptx::CachePolicy policy)
      : matrix_(matrix), policy_(policy), share_(share), ctas_(ctas) {}

  __device__ __forceinline__ void load(uint32_t to, uint32_t barrier, int mn, int k, int batch) const {
    const int along = (Operand::kIsKMajor ? k : mn) + share_ * Operand::kShareContiguous;
    const int line = (Operand::kIsKMajor ? mn : k) + share_ * Operand::kShareStrided;
    const uint32_t part = to + share_ * Operand::kShareBytes;
#pragma unroll 1  // a producer has few registers
    for (int i = 0; i < Operand::kBoxes; ++i) {
      const uint32_t at = part + i * Operand::kBoxBytes;
      const ptx::BoxOfFive box =
          matrix_.box(along + i * Operand::kBoxContiguous, line + i * Operand::kBoxStrided, batch);
      if constexpr (Operand::kShares > 1) {
        ptx::tma_load_multicast(at, matrix_.map, barrier, ctas_, box, policy_);
      } else {
        ptx::tma_load(at, matrix_.map, barrier, box, policy_);
      }
    }
  }

 private:
  const TmaFolded& matrix_;
  ptx::CachePolicy policy_;
  int share_;
  uint16_t ctas_;
};

}  // namespace tilewright
