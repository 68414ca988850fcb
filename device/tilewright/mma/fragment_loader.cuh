// Loads a warp's fragments of one operand from shared memory, in the order in which mma.sync takes them: by ldmatrix
// where the 16 bytes that a lane addresses lie along K, or are 16-bit elements along M or N, which ldmatrix transposes;
// element by element otherwise.
#pragma once

#include "tilewright/operand/swizzle.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// One instruction's operand has kAtomMn x kAtomK elements, in kRegisters registers of each lane. A warp's tile has
/// kTiles of them along M or N. kIsA selects the register order of A, rows g and g+8 first, or that of B.
template <class Operand, bool kIsA, int kAtomMn, int kAtomK, int kRegisters, int kTiles>
class FragmentLoader {
  using Element = typename Operand::Element;
  using Register = Select<sizeof(Element) == 8, double, uint32_t>;
  static constexpr int kElementBytes = sizeof(Element);
  static constexpr int kPanelStep = Operand::kStrided * Operand::kPanelBytes;
  static constexpr int kKBytes = kAtomK * kElementBytes;

  // ldmatrix.x4 loads four matrices of 8 rows of 16 bytes: some along M or N, the rest along K.
  static constexpr int kMatricesK = kKBytes / 16;
  static constexpr int kMatricesMn = 4 / maximum(kMatricesK, 1);
  static constexpr int kGroupTiles = Operand::kUsesLdmatrix ? maximum(kMatricesMn * 8 / kAtomMn, 1) : 1;
  static_assert(!Operand::kUsesLdmatrix || kMatricesK == 1 || kMatricesK == 2, "ldmatrix takes 16 or 32 bytes of K");
  static_assert(kTiles % kGroupTiles == 0, "ldmatrix.x4 loads whole groups of instruction tiles");

 public:
  using Fragment = Register[kTiles][kRegisters];

  /// `mn` is the first row or column of the warp's tile within the CTA's.
  __device__ __forceinline__ FragmentLoader(int mn, int lane) {
    int k_byte = 0;  // K-major: byte along K; else the line, which is k
    int line = 0;
    if constexpr (Operand::kUsesLdmatrix) {
      const int matrix = lane / 8;
      // A's registers go down the rows first, B's along K first: ldmatrix's matrices are taken in that order.
      const int matrix_k = kIsA ? matrix / kMatricesMn : matrix % kMatricesK;
      const int matrix_mn = kIsA ? matrix % kMatricesMn : matrix / kMatricesK;
      if constexpr (Operand::kIsKMajor) {
        line = mn + matrix_mn * 8 + lane % 8;
        k_byte = matrix_k * 16;
      } else {
        line = matrix_k * 8 + lane % 8;
        k_byte = (mn + matrix_mn * 8) * kElementBytes;
      }
    } else {
      const int along_mn = mn + lane / 4;
      const int along_k = lane % 4;
      line = Operand::kIsKMajor ? along_mn : along_k;
      k_byte = (Operand::kIsKMajor ? along_k : along_mn) * kElementBytes;
    }
    const int panel = k_byte / Operand::kPanelBytes;
    lane_offset_ = panel * kPanelStep +
                   swizzled<typename Operand::Swizzle>(line * Operand::kPanelBytes + k_byte % Operand::kPanelBytes);
  }

  /// Loads the fragments of K step `kStep`, kAtomK elements, from the tile at shared address `tile`.
  template <int kStep>
  __device__ __forceinline__ void load(Fragment& fragment, uint32_t tile) const {
    if constexpr (Operand::kUsesLdmatrix) {
#pragma unroll
      for (int first = 0; first < kTiles; first += kGroupTiles) {
        uint32_t matrix[4];
        ptx::ldmatrix_x4<!Operand::kIsKMajor>(matrix, address(tile, first * kAtomMn, kStep * kAtomK));
#pragma unroll
        for (int i = 0; i < 4; ++i) fragment[first + i / kRegisters][i % kRegisters] = matrix[i];
      }
    } else {
#pragma unroll
      for (int tile_index = 0; tile_index < kTiles; ++tile_index) {
#pragma unroll
        for (int i = 0; i < kRegisters; ++i) {
          constexpr int kHalves = kAtomMn / 8;  // registers go down the rows, then along K
          const int mn = tile_index * kAtomMn + i % kHalves * 8;
          const int k = kStep * kAtomK + i / kHalves * 4;
          fragment[tile_index][i] = load_element(address(tile, mn, k));
        }
      }
    }
  }

 private:
  /// The address of this lane's element, moved by (mn, k), which are constants after unrolling. A bit below the panel's
  /// width comes from the lane or from the move, never from both, so these bits are joined by exclusive or.
  __device__ __forceinline__ uint32_t address(uint32_t tile, int mn, int k) const {
    const int line = Operand::kIsKMajor ? mn : k;
    const int contiguous_byte = (Operand::kIsKMajor ? k : mn) * kElementBytes;
    const uint32_t within = contiguous_byte % Operand::kPanelBytes;
    const uint32_t outside = contiguous_byte / Operand::kPanelBytes * kPanelStep + line * Operand::kPanelBytes;
    return tile + (lane_offset_ ^ within) + outside;
  }

  static __device__ __forceinline__ Register load_element(uint32_t address) {
    if constexpr (kElementBytes == 8) {
      return ptx::load_shared_f64(address);
    } else {
      return ptx::load_shared_b32(address);
    }
  }

  uint32_t lane_offset_;
};

}  // namespace tilewright
