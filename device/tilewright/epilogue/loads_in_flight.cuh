// Copies whose loads overlap.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// Number of vectors of `bytes` bytes that take eight registers.
__device__ constexpr int vectors_in_flight(int bytes) { return 32 / maximum(bytes, 4); }

/// Calls store(i, load(i)) for i = thread, thread + kThreads and so on below kCount. The loads of up to kInFlight
/// numbers are issued before their stores. Otherwise each load would wait for the one before, because the compiler may
/// not move a load across a store that may write the same memory.
template <int kCount, int kThreads, int kInFlight, class Load, class Store>
__device__ __forceinline__ void copy_in_flight(int thread, const Load& load, const Store& store) {
  constexpr int kTogether = minimum(kInFlight, ceil_div(kCount, kThreads));
  constexpr bool kIsWhole = kCount % (kTogether * kThreads) == 0;
#pragma unroll 1
  for (int first = thread; first < kCount; first += kTogether * kThreads) {
    decltype(load(0)) values[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int i = first + j * kThreads;
      if (kIsWhole || i < kCount) values[j] = load(i);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int i = first + j * kThreads;
      if (kIsWhole || i < kCount) store(i, values[j]);
    }
  }
}

}  // namespace tilewright
