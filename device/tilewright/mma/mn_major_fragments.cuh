// Loads A's fragments from an MN-major tile in shared memory, for wgmma that takes A from registers.
//
// Operand: fragment_offset(thread, load, mn) and fragment_step(k) in elements. The threads whose number has a bit of
// kStaggeredThreads set perform load i ^ kStaggeredLoads as their i-th, which avoids bank conflicts; see
// arch/wgmma_fragment.
#pragma once

#include "tilewright/ptx/permute.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Fragments of 32-bit elements, one per register.
template <class Operand, int kAtoms>
class MnMajorWords {
 public:
  static constexpr int kRegisters = 4;
  using Fragment = uint32_t[kAtoms][kRegisters];

  /// Prepares the loads for the instructions along M from number `first_atom` of the tile on.
  __device__ __forceinline__ MnMajorWords(int first_atom, int thread)
      : is_staggered_((thread & Operand::kStaggeredThreads) != 0) {
    const int turn = is_staggered_ ? Operand::kStaggeredLoads : 0;
#pragma unroll
    for (int atom = 0; atom < kAtoms; ++atom) {
#pragma unroll
      for (int load = 0; load < kRegisters; ++load) {
        offset_[atom][load] = Operand::fragment_offset(thread, load ^ turn, first_atom + atom) * kElementBytes;
      }
    }
  }

  /// Loads the fragments of K step `k` from the tile at shared address `tile`.
  __device__ __forceinline__ void load(Fragment& fragment, uint32_t tile, int k) const {
    const uint32_t step = Operand::fragment_step(k) * kElementBytes;
#pragma unroll
    for (int atom = 0; atom < kAtoms; ++atom) {
      uint32_t loaded[kRegisters];
#pragma unroll
      for (int i = 0; i < kRegisters; ++i) loaded[i] = ptx::load_shared_b32(tile + offset_[atom][i] + step);
#pragma unroll
      for (int i = 0; i < kRegisters; ++i) {
        fragment[atom][i] = is_staggered_ ? loaded[i ^ Operand::kStaggeredLoads] : loaded[i];
      }
    }
  }

 private:
  static constexpr uint32_t kElementBytes = 4;

  bool is_staggered_;
  uint32_t offset_[kAtoms][kRegisters];
};

/// Fragments of 8-bit elements. A register of wgmma's A holds four elements of one row, adjacent along K.
/// ldmatrix.trans instead gives each register two adjacent rows at two k. Byte permutations of two such registers make
/// one register of the first row and one of the second.
template <class Operand, int kAtoms>
class MnMajorBytes {
 public:
  static constexpr int kRegisters = 4;
  using Fragment = uint32_t[kAtoms][kRegisters];

  /// Prepares the loads for the instructions along M from number `first_atom` of the tile on.
  __device__ __forceinline__ MnMajorBytes(int first_atom, int thread) {
    const int turn = (thread & Operand::kStaggeredThreads) != 0 ? Operand::kStaggeredLoads : 0;
#pragma unroll
    for (int atom = 0; atom < kAtoms; ++atom) {
      offset_[atom] = Operand::fragment_offset(thread, thread % 32 / 8 ^ turn, first_atom + atom);
    }
    // This lane receives elements of rows 2 * (lane % 4) and 2 * (lane % 4) + 1 of the matrices.
    const bool is_staggered = (thread % 4 * 2 & Operand::kStaggeredThreads) != 0;
    first_row_ = is_staggered ? 0x2064 : 0x6420;
    second_row_ = is_staggered ? 0x3175 : 0x7531;
  }

  /// Loads the fragments of K step `k` from the tile at shared address `tile`.
  __device__ __forceinline__ void load(Fragment& fragment, uint32_t tile, int k) const {
#pragma unroll
    for (int atom = 0; atom < kAtoms; ++atom) {
      uint32_t matrix[4];
      ptx::ldmatrix_x4<true>(matrix, tile + offset_[atom] + Operand::fragment_step(k));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        fragment[atom][2 * half] = ptx::permute_bytes(matrix[2 * half], matrix[2 * half + 1], first_row_);
        fragment[atom][2 * half + 1] = ptx::permute_bytes(matrix[2 * half], matrix[2 * half + 1], second_row_);
      }
    }
  }

 private:
  static_assert(Operand::kStaggeredLoads == 1, "the two matrices of a register change places");

  uint32_t first_row_, second_row_;
  uint32_t offset_[kAtoms];
};

template <class Operand, int kAtoms>
using MnMajorFragments =
    Select<Operand::kElementBits == 32, MnMajorWords<Operand, kAtoms>, MnMajorBytes<Operand, kAtoms>>;

}  // namespace tilewright
