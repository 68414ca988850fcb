// Copies one operand's tile from global to shared memory for CUDA cores. In shared memory M or N is contiguous, and
// elements have the type in which products are computed. Elements that are stored unchanged and have 4 bytes or more
// are copied by cp.async, others through registers, where they are converted.
#pragma once

#include "tilewright/numeric/convert.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/shared.cuh"
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
  static_assert(kThreads % kVectorsPerLine == 0 || kVectorsPerLine % kThreads == 0,
                "a pass covers whole lines or divides one");
  static_assert(!Operand::kIsAsync || !Operand::kIsKMajor || kVector == 1,
                "a transposing cp.async moves single elements");

  // The line and the element at which pass p begins, relative to pass 0; the same for every thread.
  static constexpr __device__ int pass_line(int pass) { return pass * kThreads / kVectorsPerLine; }
  static constexpr __device__ int pass_first(int pass) { return pass * kThreads % kVectorsPerLine * kVector; }
  static constexpr int kLinesPerPass = maximum(kThreads / kVectorsPerLine, 1);

  /// The offset in shared memory. It is linear in both, so that the offsets of a thread and of a pass add up.
  static constexpr __device__ int stored_at(int line, int contiguous) {
    return Operand::kIsKMajor ? contiguous * Operand::kLineElements + line : line * Operand::kLineElements + contiguous;
  }

 public:
  /// The matrix begins `offset` elements after `operand` and has leading dimension `ld`. `mn` is the first row or
  /// column of the tile, `mn_extent` the matrix's extent along the same mode.
  __device__ __forceinline__ PanelCopy(const void* operand, int64_t offset, int64_t ld, int mn, int mn_extent,
                                       int thread)
      : ld_(ld),
        mn_left_(mn_extent - mn),
        line_(thread / kVectorsPerLine),
        first_(thread % kVectorsPerLine * kVector),
        is_active_(!kIsPartial || thread < kVectors) {
    const int64_t origin = offset + (Operand::kIsKMajor ? mn * ld : static_cast<int64_t>(mn));
    global_ = static_cast<const Element*>(operand) + origin + line_ * ld + first_;
    pass_elements_ = kLinesPerPass * ld;
  }

  /// Issues the copy of the next tile along K to `tile`. finish() stores the elements that go through registers.
  /// `k_left` elements of K are left; elements after these, or outside the matrix along M or N, become zero.
  __device__ __forceinline__ void start(Stored* tile, int k_left) {
    const int lines_left = (Operand::kIsKMajor ? mn_left_ : k_left) - line_;
    const int elements_left = (Operand::kIsKMajor ? k_left : mn_left_) - first_;
    const uint32_t to = ptx::shared_address(tile + stored_at(line_, first_));
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int valid_of_line = min(max(elements_left - pass_first(pass), 0), kVector);
      const int valid = pass_line(pass) < lines_left && (!is_last_partial(pass) || is_active_) ? valid_of_line : 0;
      const Element* const from = global_ + pass_line(pass) / kLinesPerPass * pass_elements_ + pass_first(pass);
      if constexpr (Operand::kIsAsync) {
        constexpr int kElementBytes = static_cast<int>(sizeof(Element));
        const uint32_t offset = stored_at(pass_line(pass), pass_first(pass)) * kElementBytes;
        if (!is_last_partial(pass) || is_active_) {
          ptx::cp_async_zfill<kElementBytes * kVector>(to + offset, from, valid * kElementBytes);
        }
      } else {
        load(registers_[pass], from, valid);
      }
    }
    global_ += Operand::kIsKMajor ? static_cast<int64_t>(Operand::kTileK) : Operand::kTileK * ld_;
  }

  __device__ __forceinline__ void finish(Stored* tile) const {
    if constexpr (!Operand::kIsAsync) {
      Stored* const to = tile + stored_at(line_, first_);
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        if (is_last_partial(pass) && !is_active_) break;
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          to[stored_at(pass_line(pass), pass_first(pass) + i)] = convert<Stored>(registers_[pass].element[i]);
        }
      }
    }
  }

 private:
  /// Whether some threads are inactive in the pass. This happens only if the tile is a single pass that is not full.
  static constexpr __device__ bool is_last_partial(int pass) { return kIsPartial && pass == kPasses - 1; }

  static __device__ __forceinline__ void load(Vector<Element, kVector>& to, const Element* from, int valid) {
    if (valid == kVector) {
      to = *reinterpret_cast<const Vector<Element, kVector>*>(from);
    } else {
#pragma unroll
      for (int i = 0; i < kVector; ++i) to.element[i] = i < valid ? from[i] : Element{};
    }
  }

  const Element* global_;  // this thread's vector in the next tile
  int64_t ld_;
  int64_t pass_elements_;  // from the lines of one pass to those of the next
  int mn_left_;            // rows or columns from the tile's origin to the matrix's end
  int line_, first_;       // this thread's line, and element of the line, in pass 0
  bool is_active_;
  Vector<Element, kVector> registers_[Operand::kIsAsync ? 1 : kPasses];
};

}  // namespace tilewright
