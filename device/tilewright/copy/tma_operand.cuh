// The operand path with TMA: copies one operand's tile from global to shared memory, box after box. The CTAs of a
// cluster that need the same tile share the work by multicast.
#pragma once

#include "tilewright/operand/tma_folded.cuh"
#include "tilewright/operand/tma_im2col.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The number of the part of an operand's tile that a CTA loads, and the mask of the CTAs of its cluster that need the
/// tile.
struct OperandShare {
  int number;
  uint16_t ctas;
};

/// Operand: kIsKMajor, kBoxes, kShares (how many CTAs need the same tile; each of them loads one share of every box and
/// multicasts it to all), and the steps from one box to the next and from one share to the next: kBoxContiguous,
/// kBoxStrided (elements of the matrix), kBoxBytes (of shared memory), kShareContiguous, kShareStrided, kShareBytes.
template <class Operand, class Source = typename Operand::Source>
class TmaOperand {
 public:
  __device__ __forceinline__ TmaOperand(const TmaMatrix& map, const OperandShare& share, ptx::CachePolicy policy)
      : map_(map), share_(share), policy_(policy) {}

  /// Issues this CTA's loads of the tile at (mn, k) of matrix `batch`.
  __device__ __forceinline__ void load(uint32_t to, uint32_t barrier, int mn, int k, int batch) const {
    const int contiguous = (Operand::kIsKMajor ? k : mn) + share_.number * Operand::kShareContiguous;
    const int strided = (Operand::kIsKMajor ? mn : k) + share_.number * Operand::kShareStrided;
    const uint32_t part = to + share_.number * Operand::kShareBytes;
#pragma unroll(kUnrolled)
    for (int box = 0; box < Operand::kBoxes; ++box) {
      const uint32_t at = part + box * Operand::kBoxBytes;
      const int x = contiguous + box * Operand::kBoxContiguous;
      const int y = strided + box * Operand::kBoxStrided;
      if constexpr (Operand::kShares > 1) {
        ptx::tma_load_multicast(at, map_, barrier, share_.ctas, x, y, batch, policy_);
      } else {
        ptx::tma_load(at, map_, barrier, x, y, batch, policy_);
      }
    }
  }

 private:
  // When the loop over six boxes was fully unrolled, a producer of 32 registers spilled their coordinates.
  static constexpr int kUnrolled = Operand::kBoxes <= 4 ? Operand::kBoxes : 2;

  const TmaMatrix& map_;
  OperandShare share_;
  ptx::CachePolicy policy_;
};

/// Loads an operand from a matrix whose modes are decomposed, TmaIm2col or TmaFolded, which says where each box begins.
template <class Operand, class Matrix>
class TmaDecomposedOperand {
 public:
  __device__ __forceinline__ TmaDecomposedOperand(const Matrix& matrix, const OperandShare& share,
                                                  ptx::CachePolicy policy)
      : matrix_(matrix), share_(share), policy_(policy) {}

  __device__ __forceinline__ void load(uint32_t to, uint32_t barrier, int mn, int k, int batch) const {
    const int contiguous = (Operand::kIsKMajor ? k : mn) + share_.number * Operand::kShareContiguous;
    const int strided = (Operand::kIsKMajor ? mn : k) + share_.number * Operand::kShareStrided;
    const uint32_t part = to + share_.number * Operand::kShareBytes;
#pragma unroll 1  // a producer has few registers
    for (int box = 0; box < Operand::kBoxes; ++box) {
      const uint32_t at = part + box * Operand::kBoxBytes;
      const auto from =
          matrix_.box(strided + box * Operand::kBoxStrided, contiguous + box * Operand::kBoxContiguous, batch);
      if constexpr (Operand::kShares > 1) {
        ptx::tma_load_multicast(at, matrix_.map, barrier, share_.ctas, from, policy_);
      } else {
        ptx::tma_load(at, matrix_.map, barrier, from, policy_);
      }
    }
  }

 private:
  const Matrix& matrix_;
  OperandShare share_;
  ptx::CachePolicy policy_;
};

template <class Operand>
class TmaOperand<Operand, TmaIm2col> : public TmaDecomposedOperand<Operand, TmaIm2col> {
  using TmaDecomposedOperand<Operand, TmaIm2col>::TmaDecomposedOperand;
};
/// Loads the im2col matrix of a class.
template <class Operand, int kClasses>
class TmaOperand<Operand, TmaIm2colClasses<kClasses>> : public TmaDecomposedOperand<Operand, TmaIm2col> {
  using TmaDecomposedOperand<Operand, TmaIm2col>::TmaDecomposedOperand;
};
template <class Operand, int kClasses>
class TmaOperand<Operand, RepackedClasses<kClasses>> : public TmaDecomposedOperand<Operand, TmaIm2col> {
  using TmaDecomposedOperand<Operand, TmaIm2col>::TmaDecomposedOperand;
};
template <class Operand>
class TmaOperand<Operand, TmaFolded> : public TmaDecomposedOperand<Operand, TmaFolded> {
  using TmaDecomposedOperand<Operand, TmaFolded>::TmaDecomposedOperand;
};

}  // namespace tilewright
