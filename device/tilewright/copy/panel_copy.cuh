// One operand's tile from global to shared memory for CUDA cores: stored K by K, M or N contiguous, in the type that the
// products are computed in. By cp.async where an element is stored as it is and has 4 bytes or more; through registers,
// converted on the way, otherwise.
#pragma once

#include "tilewright/numeric/convert.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Operand: Element, Stored (type in shared memory), kIsKMajor, kTileMn, kTileK, kLineElements (of shared memory,
/// padded), kVector (elements a thread moves at once along the contiguous mode of global memory), kIsAsync.
template <class Operand, int kThreads>
class PanelCopy {
  using Element = typename Operand::Element;
  using Stored = typename Operand::Stored;
  static constexpr int kVector = Operand::kVector;
  static constexpr int kContiguous = Operand::kIsKMajor ? Operand::kTileK : Operand::kTileMn;
  static constexpr int kStrided = Operand::kIsKMajor ? Operand::kTileMn : Operand::kTileK;
  static constexpr int kVectorsPerLine = kContiguous / kVector;
  static constexpr int kVectors = kVectorsPerLine * kStrided;
  static constexpr int kPasses = ceil_div(kVectors, kThreads);
  static constexpr bool kIsPartial = kVectors % kThreads != 0;
  static_assert(kContiguous % kVector == 0, "vectors cover a line");
  static_assert(!Operand::kIsAsync || !Operand::kIsKMajor || kVector == 1, "a transposing cp.async moves single elements");

 public:
  __device__ __forceinline__ PanelCopy(const void* matrix, int64_t ld, int mn, int mn_extent, int thread)
      : global_(static_cast<const Element*>(matrix) + (Operand::kIsKMajor ? mn * ld : static_cast<int64_t>(mn))),
        ld_(ld),
        mn_left_(mn_extent - mn),
        thread_(thread) {}

  /// Begins moving the next tile along K toward `tile`; finish() completes what goes through registers.
  __device__ __forceinline__ void start(Stored* tile, int k_left) {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int index = thread_ + pass * kThreads;
      const int line = index / kVectorsPerLine;
      const int first = index % kVectorsPerLine * kVector;
      if (kIsPartial && index >= kVectors) break;
      const int lines_left = Operand::kIsKMajor ? mn_left_ : k_left;
      const int elements_left = (Operand::kIsKMajor ? k_left : mn_left_) - first;
      const int valid = line < lines_left ? min(max(elements_left, 0), kVector) : 0;
      const Element* const from = global_ + line * ld_ + first;
      if constexpr (Operand::kIsAsync) {
        ptx::cp_async_zfill<static_cast<int>(sizeof(Element)) * kVector>(ptx::shared_address(tile + stored_at(line, first)), from,
                                                       valid * static_cast<int>(sizeof(Element)));
      } else {
        load(registers_[pass], from, valid);
      }
    }
    global_ += Operand::kIsKMajor ? static_cast<int64_t>(Operand::kTileK) : Operand::kTileK * ld_;
  }

  __device__ __forceinline__ void finish(Stored* tile) const {
    if constexpr (!Operand::kIsAsync) {
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int index = thread_ + pass * kThreads;
        if (kIsPartial && index >= kVectors) break;
        const int line = index / kVectorsPerLine;
        const int first = index % kVectorsPerLine * kVector;
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          tile[stored_at(line, first + i)] = convert<Stored>(registers_[pass].element[i]);
        }
      }
    }
  }

 private:
  static __device__ __forceinline__ int stored_at(int line, int contiguous) {
    const int mn = Operand::kIsKMajor ? line : contiguous;
    const int k = Operand::kIsKMajor ? contiguous : line;
    return k * Operand::kLineElements + mn;
  }

  static __device__ __forceinline__ void load(Vector<Element, kVector>& to, const Element* from, int valid) {
    if (valid == kVector) {
      to = *reinterpret_cast<const Vector<Element, kVector>*>(from);
    } else {
#pragma unroll
      for (int i = 0; i < kVector; ++i) to.element[i] = i < valid ? from[i] : Element{};
    }
  }

  const Element* global_;
  int64_t ld_;
  int mn_left_;
  int thread_;
  Vector<Element, kVector> registers_[Operand::kIsAsync ? 1 : kPasses];
};

}  // namespace tilewright
