// Loads of a thread's part of an operand from global memory to registers: a few lines, a few adjacent elements of K.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// A line is a row of A or a column of B. Operand: Element; kIsKMajor, whether the elements of a line are adjacent,
/// else lines are; kVector, the elements of one load, which divides kChunk, or else kLines.
template <class Operand, int kLines, int kChunk>
class LineVectors {
  using Element = typename Operand::Element;
  static constexpr int kVector = Operand::kVector;
  static_assert((Operand::kIsKMajor ? kChunk : kLines) % kVector == 0);

 public:
  struct Fragment {
    Element element[kLines][kChunk];
  };

  /// The operand has `end` lines; this thread's begin at `first`. Its loads of lines beyond the last are undefined and
  /// stay inside the operand.
  __device__ __forceinline__ LineVectors(const Element* matrix, int64_t ld, int first, int end)
      : matrix_(matrix), ld_(ld), first_(first), last_(end - 1) {}

  /// Whether no vector across lines reaches beyond the last line.
  __device__ __forceinline__ bool is_whole() const { return Operand::kIsKMajor || first_ + kLines - 1 <= last_; }

  /// Loads the elements from `k` on, which must exist. kIsWhole says what is_whole() returned: a condition at each
  /// vector would keep the compiler from issuing many loads at once.
  template <bool kIsWhole>
  __device__ __forceinline__ void load(Fragment& to, int k) const {
    if constexpr (Operand::kIsKMajor) {
#pragma unroll
      for (int line = 0; line < kLines; ++line) {
        const Element* const from = matrix_ + minimum(first_ + line, last_) * ld_ + k;
#pragma unroll
        for (int i = 0; i < kChunk; i += kVector) {
          const auto vector = *reinterpret_cast<const Vector<Element, kVector>*>(from + i);
#pragma unroll
          for (int v = 0; v < kVector; ++v) to.element[line][i + v] = vector.element[v];
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < kChunk; ++i) load_across<kIsWhole>(to, k, i);
    }
  }

  /// Loads the elements from `k` to below `end`; the others are zero.
  __device__ __forceinline__ void load_until(Fragment& to, int k, int end) const {
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      if (k + i < end) {
        if constexpr (Operand::kIsKMajor) {
#pragma unroll
          for (int line = 0; line < kLines; ++line)
            to.element[line][i] = matrix_[minimum(first_ + line, last_) * ld_ + k + i];
        } else {
          load_across<false>(to, k, i);
        }
      } else {
#pragma unroll
        for (int line = 0; line < kLines; ++line) to.element[line][i] = Element{};
      }
    }
  }

 private:
  /// Loads element k + i of all lines, which are adjacent. Vectors that may reach beyond the last line are loaded by
  /// element.
  template <bool kIsWhole>
  __device__ __forceinline__ void load_across(Fragment& to, int k, int i) const {
    const Element* const from = matrix_ + (k + i) * ld_;
#pragma unroll
    for (int line = 0; line < kLines; line += kVector) {
      Vector<Element, kVector> vector;
      if constexpr (kIsWhole) {
        vector = *reinterpret_cast<const Vector<Element, kVector>*>(from + first_ + line);
      } else {
#pragma unroll
        for (int v = 0; v < kVector; ++v) vector.element[v] = from[minimum(first_ + line + v, last_)];
      }
#pragma unroll
      for (int v = 0; v < kVector; ++v) to.element[line + v][i] = vector.element[v];
    }
  }

  const Element* matrix_;
  int64_t ld_;
  int first_, last_;
};

}  // namespace tilewright
