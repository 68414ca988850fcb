// A's fragments for wgmma that takes A from registers, loaded from an MN-major tile in shared memory.
#pragma once

#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Elements of 32 bits: a register is one of them. Operand: fragment_offset(thread, load, mn) and fragment_step(k) in
/// elements, kTurnedThreads and kTurnedLoads (threads that have the bit make load i ^ kTurnedLoads i-th).
template <class Operand, int kAtoms>
class MnMajorFragments {
 public:
  static constexpr int kRegisters = 4;
  using Fragment = uint32_t[kAtoms][kRegisters];

  /// Of the tile's instructions along M from `first_atom` on.
  __device__ __forceinline__ MnMajorFragments(int first_atom, int thread)
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

}  // namespace tilewright
