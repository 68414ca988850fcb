// A's fragments for wgmma that takes A from registers, loaded from an MN-major tile in shared memory.
//
// Operand: fragment_offset(thread, load, mn) and fragment_step(k) in elements, kTurnedThreads and kTurnedLoads (threads
// that have the bit make load i ^ kTurnedLoads i-th): arch/wgmma_fragment.
#pragma once

#include "tilewright/ptx/permute.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Elements of 32 bits: a register is one of them.
template <class Operand, int kAtoms>
class MnMajorWords {
 public:
  static constexpr int kRegisters = 4;
  using Fragment = uint32_t[kAtoms][kRegisters];

  /// Of the tile's instructions along M from `first_atom` on.
  __device__ __forceinline__ MnMajorWords(int first_atom, int thread)
      : is_turned_((thread & Operand::kTurnedThreads) != 0) {
    const int turn = is_turned_ ? Operand::kTurnedLoads : 0;
#pragma unroll
    for (int atom = 0; atom < kAtoms; ++atom) {
#pragma unroll
      for (int load = 0; load < kRegisters; ++load) {
        offset_[atom][load] = Operand::fragment_offset(thread, load ^ turn, first_atom + atom) * kElementBytes;
      }
    }
  }

  /// Step `k` of the tile at shared address `tile`.
  __device__ __forceinline__ void load(Fragment& fragment, uint32_t tile, int k) const {
    const uint32_t step = Operand::fragment_step(k) * kElementBytes;
#pragma unroll
    for (int atom = 0; atom < kAtoms; ++atom) {
      uint32_t loaded[kRegisters];
#pragma unroll
      for (int i = 0; i < kRegisters; ++i) loaded[i] = ptx::load_shared_b32(tile + offset_[atom][i] + step);
#pragma unroll
      for (int i = 0; i < kRegisters; ++i) {
        fragment[atom][i] = is_turned_ ? loaded[i ^ Operand::kTurnedLoads] : loaded[i];
      }
    }
  }

 private:
  static constexpr uint32_t kElementBytes = 4;

  bool is_turned_;
  uint32_t offset_[kAtoms][kRegisters];
};

/// Elements of 8 bits: a register is four k of one row. ldmatrix.trans gives a lane two rows at two k in each register,
/// neighbours each; of two such registers, one row's bytes and then the other's are put together.
template <class Operand, int kAtoms>
class MnMajorBytes {
 public:
  static constexpr int kRegisters = 4;
  using Fragment = uint32_t[kAtoms][kRegisters];

  /// Of the tile's instructions along M from `first_atom` on.
  __device__ __forceinline__ MnMajorBytes(int first_atom, int thread) {
    const int turn = (thread & Operand::kTurnedThreads) != 0 ? Operand::kTurnedLoads : 0;
#pragma unroll
    for (int atom = 0; atom < kAtoms; ++atom) {
      offset_[atom] = Operand::fragment_offset(thread, thread % 32 / 8 ^ turn, first_atom + atom);
    }
    // What this lane receives comes from rows 2 * (lane % 4) and the next of the matrices.
    const bool is_turned = (thread % 4 * 2 & Operand::kTurnedThreads) != 0;
    first_row_ = is_turned ? 0x2064 : 0x6420;
    second_row_ = is_turned ? 0x3175 : 0x7531;
  }

  /// Step `k` of the tile at shared address `tile`.
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
  static_assert(Operand::kTurnedLoads == 1, "the two matrices of a register change places");

  uint32_t first_row_, second_row_;
  uint32_t offset_[kAtoms];
};

template <class Operand, int kAtoms>
using MnMajorFragments =
    Select<Operand::kElementBits == 32, MnMajorWords<Operand, kAtoms>, MnMajorBytes<Operand, kAtoms>>;

}  // namespace tilewright
