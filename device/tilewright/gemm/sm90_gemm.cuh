// GEMM on tensor cores as of sm_90: one thread loads operands by TMA into a ring of swizzled shared-memory stages,
// warpgroups multiply them from there by wgmma, D leaves by TMA. A persistent CTA computes one tile of D after another.
#pragma once

#include "tilewright/copy/tma_operand.cuh"
#include "tilewright/epilogue/tma_output.cuh"
#include "tilewright/gemm/sm90_parameters.cuh"
#include "tilewright/pipeline/tma_ring.cuh"
#include "tilewright/ptx/cluster.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/scheduler/persistent.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Cooperative schedule: kConsumers warpgroups share a tile, each kAtomsM x 64 rows of it. Plan: OperandA and OperandB
/// (with kTileBytes, kDescriptor, descriptor_offset(mn, k): what one instruction adds to its stage's descriptor),
/// Wgmma, kTileM, kTileN, kTileK, kConsumers, kStages, kClusterM, kClusterN, kProducerRegisters, kConsumerRegisters,
/// and what PersistentTiles and TmaOutput ask for. All numbers come from plan/sm90_gemm.
template <class Plan, class Epilogue>
class Sm90Gemm {
  using Wgmma = typename Plan::Wgmma;
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  using Parameters = Sm90GemmParameters<typename Epilogue::Scalars>;
  using Output = TmaOutput<Plan, Epilogue>;

  static constexpr int kClusterSize = Plan::kClusterM * Plan::kClusterN;
  static constexpr int kAtomsM = Plan::kTileM / 64 / Plan::kConsumers;  // instructions along M of a warpgroup
  static constexpr int kSteps = Plan::kTileK / Wgmma::kK;
  static constexpr int kStageBytes = OperandA::kTileBytes + OperandB::kTileBytes;
  using Ring = TmaRing<Plan::kStages, kStageBytes, Plan::kConsumers, kClusterSize>;
  using Accumulators = typename Wgmma::Accumulator[kAtomsM][Wgmma::kRegisters];

 public:
  static constexpr int kSharedBytes =
      Plan::kStages * kStageBytes + Plan::kConsumers * Output::kBytes + Ring::kBarrierBytes;

  __device__ __forceinline__ explicit Sm90Gemm(const Parameters& parameters)
      : parameters_(parameters),
        warpgroup_(__shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 128, 0)),
        rank_(kClusterSize > 1 ? ptx::cluster_rank() : 0) {}

  __device__ __forceinline__ void run() {
    extern __shared__ __align__(1024) unsigned char shared_memory[];
    const uint32_t stages = ptx::shared_address(shared_memory);
    const uint32_t output = stages + Plan::kStages * kStageBytes;
    const Ring ring(stages, output + Plan::kConsumers * Output::kBytes);
    if (threadIdx.x == 0) {
      ptx::tma_prefetch(parameters_.a);
      ptx::tma_prefetch(parameters_.b);
      ptx::tma_prefetch(parameters_.d);
      ring.initialise();
    }
    synchronize();
    ptx::wait_for_dependencies();
    PersistentTiles<Plan> tiles(parameters_.cluster_tiles_m, parameters_.cluster_tiles_n, parameters_.batches, rank_);
    if (warpgroup_ == 0) {
      ptx::setmaxnreg_decrease<Plan::kProducerRegisters>();
      if (threadIdx.x < 32 && ptx::elect()) produce(ring, tiles);
    } else {
      ptx::setmaxnreg_increase<Plan::kConsumerRegisters>();
      consume(ring, tiles, output + (warpgroup_ - 1) * Output::kBytes);
    }
    // No CTA may end while others of its cluster still write to its shared memory or arrive at its barriers.
    if constexpr (kClusterSize > 1) {
      __syncwarp();
      ptx::cluster_sync();
    }
  }

 private:
  static __device__ __forceinline__ void synchronize() {
    if constexpr (kClusterSize > 1) {
      ptx::cluster_sync();
    } else {
      __syncthreads();
    }
  }

  __device__ __forceinline__ int k_tiles() const { return ceil_div(parameters_.k, Plan::kTileK); }

  /// CTAs of a cluster that differ in N share A's tile, those that differ in M share B's.
  __device__ __forceinline__ void produce(const Ring& ring, PersistentTiles<Plan>& tiles) const {
    const int cta_m = static_cast<int>(rank_) % Plan::kClusterM;
    const int cta_n = static_cast<int>(rank_) / Plan::kClusterM;
    uint32_t same_m = 0;
#pragma unroll
    for (int n = 0; n < Plan::kClusterN; ++n) same_m |= 1U << (cta_m + n * Plan::kClusterM);
    const uint32_t same_n = ((1U << Plan::kClusterM) - 1U) << (cta_n * Plan::kClusterM);
    const TmaOperand<OperandA> a(parameters_.a, cta_n, static_cast<uint16_t>(same_m));
    const TmaOperand<OperandB> b(parameters_.b, cta_m, static_cast<uint16_t>(same_n));
    const int k_tiles = this->k_tiles();
    typename Ring::Position at;
    for (TileOrigin tile; tiles.next(tile);) {
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        ring.begin_write(at, kStageBytes);
        const uint32_t stage = ring.stage(at.stage);
        a.load(stage, ring.full(at.stage), tile.m, k_tile * Plan::kTileK, tile.batch);
        b.load(stage + OperandA::kTileBytes, ring.full(at.stage), tile.n, k_tile * Plan::kTileK, tile.batch);
        at.advance();
      }
    }
    ptx::launch_dependents();
  }

  __device__ __forceinline__ void consume(const Ring& ring, PersistentTiles<Plan>& tiles,
                                          uint32_t output_buffers) const {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const int consumer = warpgroup_ - 1;
    Output output(parameters_, output_buffers, thread, 1 + consumer);
    const int k_tiles = this->k_tiles();
    typename Ring::Position at;
    for (TileOrigin tile; tiles.next(tile);) {
      Accumulators accumulators;
      multiply(accumulators, ring, at, k_tiles, consumer, thread);
      const int row = tile.m + consumer * kAtomsM * 64;
#pragma unroll
      for (int i = 0; i < kAtomsM; ++i) {
        if (row + i * 64 < parameters_.m) output.store(accumulators[i], row + i * 64, tile.n, tile.batch);
      }
    }
    output.finish();
  }

  /// The sum over all k_tiles (at least one). One stage's instructions stay in flight while the next one's are issued;
  /// a stage is given back when its own have finished.
  __device__ __forceinline__ void multiply(Accumulators& accumulators, const Ring& ring, typename Ring::Position& at,
                                           int k_tiles, int consumer, int thread) const {
    ring.begin_read(at);
    multiply_stage<true>(accumulators, ring.stage(at.stage), consumer);
    int previous = at.stage;
    at.advance();
    for (int k_tile = 1; k_tile < k_tiles; ++k_tile) {
      ring.begin_read(at);
      multiply_stage<false>(accumulators, ring.stage(at.stage), consumer);
      ptx::wgmma_wait<1>();
      ring.end_read(previous, thread);
      previous = at.stage;
      at.advance();
    }
    ptx::wgmma_wait<0>();
    ring.end_read(previous, thread);
  }

  template <bool kIsFirst>
  static __device__ __forceinline__ void multiply_stage(Accumulators& accumulators, uint32_t stage, int consumer) {
    const uint64_t a = OperandA::kDescriptor | ((stage & 0x3FFFF) >> 4);
    const uint64_t b = OperandB::kDescriptor | ((stage + OperandA::kTileBytes & 0x3FFFF) >> 4);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
#pragma unroll
      for (int i = 0; i < kAtomsM; ++i) {
        Wgmma::fma(accumulators[i], a + OperandA::descriptor_offset(consumer * kAtomsM + i, k),
                   b + OperandB::descriptor_offset(0, k), !(kIsFirst && k == 0));
      }
    }
    ptx::wgmma_commit();
  }

  const Parameters& parameters_;
  int warpgroup_;
  uint32_t rank_;
};

}  // namespace tilewright
