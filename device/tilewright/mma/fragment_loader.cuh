// Loads a warp's fragments of one operand from shared memory, in the order in which mma.sync takes them: by ldmatrix
// where the 16 bytes that a lane addresses lie along K, or are 16-bit elements along M or N, which ldmatrix transposes;
// element by element otherwise.
#pragma once

#include "tilewright/operand/swizzle.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The warp has kTiles instruction tiles along M or N, for each of which one k step of the operand fills kRegisters
/// registers of each lane. Operand: Element, kIsKMajor, kUsesLdmatrix, kSwizzledBits, and Fragments, which has kLoads
/// (of a k step), place(thread) and step_place(load, step): the places in bytes of what a load reads are the sums of
/// the two; see plan::MmaFragmentLoads.
template <class Operand, int kRegisters, int kTiles>
class FragmentLoader {
  using Element = typename Operand::Element;
  using Fragments = typename Operand::Fragments;
  using Register = Select<sizeof(Element) == 8, double, uint32_t>;
  static constexpr int kLoads = Fragments::kLoads;
  static constexpr int kRegistersPerLoad = Operand::kUsesLdmatrix ? 4 : 1;
  static_assert(kLoads * kRegistersPerLoad == kTiles * kRegisters, "the plan's loads fill the fragments");

 public:
  using Fragment = Register[kTiles][kRegisters];

  __device__ __forceinline__ explicit FragmentLoader(int thread) : place_(Fragments::place(thread)) {}

  /// Loads the fragments of K step `kStep` from the tile at shared address `tile`.
  template <int kStep>
  __device__ __forceinline__ void load(Fragment& fragment, uint32_t tile) const {
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const uint32_t address = tile + moved<Operand::kSwizzledBits>(place_, Fragments::step_place(load, kStep));
      if constexpr (Operand::kUsesLdmatrix) {
        uint32_t matrix[4];
        ptx::ldmatrix_x4<!Operand::kIsKMajor>(matrix, address);
#pragma unroll
        for (int i = 0; i < 4; ++i) fragment[(4 * load + i) / kRegisters][(4 * load + i) % kRegisters] = matrix[i];
      } else {
        fragment[load / kRegisters][load % kRegisters] = load_element(address);
      }
    }
  }

 private:
  static __device__ __forceinline__ Register load_element(uint32_t address) {
    if constexpr (sizeof(Element) == 8) {
      return ptx::load_shared_f64(address);
    } else {
      return ptx::load_shared_b32(address);
    }
  }

  uint32_t place_;  // of what this lane's first load reads, swizzled
};

}  // namespace tilewright
