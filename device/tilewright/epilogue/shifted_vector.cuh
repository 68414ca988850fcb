// Vectors of global memory whose addresses allow only shorter loads or stores.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// Moves the 4 * kWords bytes that begin `skipped` bytes before the second half of `words` to its first half. `skipped`
/// is less than that, and a multiple of kAlignmentBytes.
template <int kAlignmentBytes, int kWords>
__device__ __forceinline__ void shift_words(uint32_t (&words)[2 * kWords], int skipped) {
  const int skipped_words = skipped / 4;
#pragma unroll
  for (int step = kWords / 2; step > 0; step /= 2) {
    const bool stays = 4 * step >= kAlignmentBytes && (skipped_words & step) != 0;
#pragma unroll
    for (int i = 0; i + step < 2 * kWords; ++i) words[i] = stays ? words[i] : words[i + step];
  }
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    if constexpr (kAlignmentBytes < 4) {
      words[i] = __funnelshift_l(words[i], words[i + 1], 8U * (static_cast<uint32_t>(skipped) % 4));
    } else {
      words[i] = words[i + 1];
    }
  }
}

/// 16 bytes at any address of global memory, which two loads of 16 aligned bytes bring. The loads are issued by the
/// constructor, and only words() waits for them.
template <int kAlignmentBytes, class Element>
class ShiftedVector {
  static constexpr int kElementBytes = static_cast<int>(sizeof(Element)), kCount = 16 / kElementBytes;

 public:
  /// Zeros.
  __device__ __forceinline__ ShiftedVector() {}

  /// The elements of `line` from number x on, whose addresses are multiples of kAlignmentBytes; those from `end` on
  /// become zero. Nothing outside the line is read: at its ends, shorter loads replace the two.
  __device__ __forceinline__ ShiftedVector(const Element* line, int x, int end) {
    const auto address = reinterpret_cast<uint64_t>(line + x);
    skipped_ = static_cast<int>(-address % 16);           // bytes to the next multiple of 16
    const int first = x * kElementBytes + skipped_ - 16;  // byte of the line where the first of the two begins
    if ((first >= 0 || skipped_ == 0) && first + 32 <= end * kElementBytes) {
      const auto* const aligned = reinterpret_cast<const Words*>(address + skipped_);
      if (skipped_ != 0) low_ = aligned[-1];
      high_ = aligned[0];
    } else {
      skipped_ = 0;
      Vector<Element, kCount> elements{};
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (x + i < end) elements.element[i] = line[x + i];
      }
      high_ = reinterpret_cast<const Words&>(elements);
    }
  }

  __device__ __forceinline__ Vector<uint32_t, 4> words() const {
    uint32_t words[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i] = low_.element[i];
      words[4 + i] = high_.element[i];
    }
    shift_words<kAlignmentBytes, 4>(words, skipped_);
    return {words[0], words[1], words[2], words[3]};
  }

 private:
  using Words = Vector<uint32_t, 4>;
  Words low_{}, high_{};
  int skipped_ = 0;
};

}  // namespace tilewright
