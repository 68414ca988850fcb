// Adjacent channels of one pixel, on their way from global memory to the sums of a thread.
#pragma once

#include "tilewright/numeric/convert.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// kCount channels of one pixel in the registers that one load fills. A thread loads pixels long before it uses them.
/// If these were single elements of 16 bits, ptxas would merge the zeros of pixels outside the image into each half of
/// each register after the load, and so wait for it at once.
template <class Element, int kCount>
class ChannelVector {
  static constexpr int kBytes = kCount * static_cast<int>(sizeof(Element));
  static constexpr int kWords = maximum(kBytes / 4, 1);
  static_assert(kBytes == 16 || kBytes == 8 || kBytes == 4 || kBytes == 2 || kBytes == 1, "one load");

 public:
  /// Loads the channels at `address`, or zeros if `condition` is false.
  __device__ __forceinline__ void load_if(bool condition, const char* address) {
    if constexpr (kBytes == 16) {
      words_ = {};
      ptx::load_global_if(condition, words_, address);
    } else if constexpr (kBytes == 8) {
      words_ = {};
      ptx::load_global_if(condition, words_, address);
    } else if constexpr (kBytes == 4) {
      words_.element[0] = 0;
      ptx::load_global_b32_if(condition, words_.element[0], address);
    } else {
      uint16_t bits = 0;
      if constexpr (kBytes == 2) ptx::load_global_b16_if(condition, bits, address);
      if constexpr (kBytes == 1) ptx::load_global_b8_if(condition, bits, address);
      words_.element[0] = bits;
    }
  }

  template <class To>
  __device__ __forceinline__ void convert_to(To (&values)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = convert<To>(element(i));
  }

 private:
  __device__ __forceinline__ Element element(int i) const {
    if constexpr (sizeof(Element) == 8) {
      const Vector<uint32_t, 2> bits{words_.element[2 * i], words_.element[2 * i + 1]};
      return __builtin_bit_cast(Element, bits);
    } else if constexpr (sizeof(Element) == 4) {
      return __builtin_bit_cast(Element, words_.element[i]);
    } else if constexpr (sizeof(Element) == 2) {
      return __builtin_bit_cast(Element, static_cast<uint16_t>(words_.element[i / 2] >> (i % 2 * 16)));
    } else {
      return __builtin_bit_cast(Element, static_cast<uint8_t>(words_.element[i / 4] >> (i % 4 * 8)));
    }
  }

  Vector<uint32_t, kWords> words_;
};

}  // namespace tilewright
