// Sums of the parts of a tile that several CTAs computed, each over a part of the pixels.
#pragma once

#include "tilewright/pipeline/grid_barrier.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// CTA number i of a cooperative launch computes a part of tile i % tiles, as `parts_of_cta` parts. A tile has kQuads
/// vectors of four sums. All CTAs put their parts into the workspace and wait for each other; then each sums a share of
/// its tile over all parts, in a fixed order.
template <int kQuads, int kWarps>
class PartSums {
 public:
  using Quad = Vector<float, 4>;
  static constexpr int kSharedBytes = kWarps * 32 * static_cast<int>(sizeof(Quad));

  /// Must be constructed before this CTA waits for the others. `counter` belongs to a GridBarrier.
  __device__ __forceinline__ PartSums(char* workspace, char* counter, int tiles, int parts_of_cta)
      : tiles_(tiles),
        parts_of_cta_(parts_of_cta),
        ctas_(static_cast<int>(gridDim.x) / tiles),
        cta_(static_cast<int>(blockIdx.x) / tiles),
        partials_(workspace + static_cast<int64_t>(static_cast<int>(blockIdx.x) - cta_ * tiles) * kQuads * kQuadBytes),
        all_(reinterpret_cast<uint32_t*>(counter), static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x)) {}

  /// Puts four sums as number `quad` of part `part` of this CTA.
  __device__ __forceinline__ void put(const float (&sums)[4], int part, int quad) const {
    ptx::store_global(partials_ + (cta_ * parts_of_cta_ + part) * part_bytes() + quad * kQuadBytes,
                      Quad{sums[0], sums[1], sums[2], sums[3]});
  }

  /// Must be called by all threads when they have put all sums. Calls store(sum, quad) for this CTA's share of the
  /// tile. `shared` is the shared address of kSharedBytes. Each lane has a quad; each warp sums every kWarps-th part,
  /// and the first warp adds the sums of all warps.
  template <class Store>
  __device__ __forceinline__ void share(uint32_t shared, const Store& store) const {
    __syncthreads();
    if (threadIdx.x == 0) {
      GridBarrier all = all_;
      all.arrive();
      all.wait();
    }
    __syncthreads();
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int begin = kQuads / ctas_ * cta_ + minimum(cta_, kQuads % ctas_);
    const int end = begin + kQuads / ctas_ + (cta_ < kQuads % ctas_ ? 1 : 0);
#pragma unroll 1
    for (int first = begin; first < end; first += 32) {
      const int quad = first + lane;
      Quad sum{};
      if (quad < end) {
        const char* const from = partials_ + quad * kQuadBytes;
#pragma unroll 4
        for (int part = warp; part < ctas_ * parts_of_cta_; part += kWarps)
          add(sum, ptx::load_global<Quad>(from + part * part_bytes()));
      }
      const uint32_t own = shared + static_cast<uint32_t>(lane * kQuadBytes);
      ptx::store_shared(own + static_cast<uint32_t>(warp * 32 * kQuadBytes), sum);
      __syncthreads();
      if (warp == 0 && quad < end) {
#pragma unroll 1
        for (int other = 1; other < kWarps; ++other)
          add(sum, ptx::load_shared<Quad>(own + static_cast<uint32_t>(other * 32 * kQuadBytes)));
        store(sum, quad);
      }
      __syncthreads();
    }
  }

 private:
  static constexpr int kQuadBytes = static_cast<int>(sizeof(Quad));

  __device__ __forceinline__ int64_t part_bytes() const { return static_cast<int64_t>(tiles_) * kQuads * kQuadBytes; }

  static __device__ __forceinline__ void add(Quad& sum, const Quad& other) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sum.element[i] += other.element[i];
  }

  int tiles_, parts_of_cta_;
  int ctas_, cta_;  // of the tile, and which of them this one is
  char* partials_;  // of the tile's first part
  GridBarrier all_;
};

}  // namespace tilewright
