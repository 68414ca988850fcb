// Warp-specialized GEMM on the tensor cores of sm_90. A producer warpgroup fills a ring of swizzled shared-memory
// stages. One of its threads issues TMA loads; if TMA cannot load an operand, all its threads load it with plain loads,
// or all CTAs repack it first. Consumer warpgroups multiply the stages by wgmma. TMA stores D, or plain stores do where
// TMA cannot. Persistent CTAs compute one tile of D after another.
#pragma once

#include "tilewright/copy/k_order.cuh"
#include "tilewright/copy/plain_load_stage.cuh"
#include "tilewright/copy/repacked_operand.cuh"
#include "tilewright/copy/tma_operand.cuh"
#include "tilewright/copy/window_row.cuh"
#include "tilewright/epilogue/split_k_output.cuh"
#include "tilewright/epilogue/warpgroup_output.cuh"
#include "tilewright/gemm/sm90_parameters.cuh"
#include "tilewright/mma/promoted_mainloop.cuh"
#include "tilewright/mma/register_mainloop.cuh"
#include "tilewright/mma/warpgroup_mainloop.cuh"
#include "tilewright/operand/global_matrix.cuh"
#include "tilewright/operand/repacked_matrix.cuh"
#include "tilewright/operand/tap_columns.cuh"
#include "tilewright/operand/tma_batch.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/pipeline/consumer_turns.cuh"
#include "tilewright/pipeline/grid_barrier.cuh"
#include "tilewright/pipeline/kept_operand.cuh"
#include "tilewright/pipeline/tma_ring.cuh"
#include "tilewright/ptx/cluster.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/scheduler/class_tiles.cuh"
#include "tilewright/scheduler/group_tiles.cuh"
#include "tilewright/scheduler/independent_tiles.cuh"
#include "tilewright/scheduler/persistent.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// In the cooperative schedule, the kConsumers warpgroups share a tile, and each computes its own rows. In the
/// ping-pong schedule each has a tile of its own, so that one runs its mainloop while another runs its epilogue. With
/// split-K, kSplitK > 1 CTAs compute a tile, each over a part of K, and each stores a share of it. Launches with
/// split-K or repacked operands are cooperative launches. Plan: the members that the parts below use, and kTileM,
/// kTileN, kTileK, kConsumers, kIsPingPong, kStages, kClusterM, kClusterN, kSplitK, kProducerRegisters,
/// kConsumerRegisters, Scheduler (one of scheduler/), kPlainLoadWords (32-bit words that a producer thread
/// keeps in flight when it loads an operand with plain loads), SharedMemory (offsets and sizes of its parts),
/// kSharedTaps and kSharedStep (see SharedPixels of plan/sm90/operand), kCounterBytes (size of the counters at the
/// workspace's beginning), kTensorMapSlots (see operand/tensor_map_ring.cuh), Mainloop, kConsumerArrivals (arrivals of
/// one consumer warpgroup per stage). The values come from plan/sm90/gemm.
template <class Plan, class Epilogue>
class Sm90Gemm {
  using Wgmma = typename Plan::Wgmma;
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  using Parameters = Sm90GemmParameters<Plan, typename Epilogue::Parameters>;

  static constexpr int kClusterCtas = Plan::kClusterM * Plan::kClusterN;  // CTAs that load for each other by multicast
  static constexpr int kTeam = Plan::kIsPingPong ? 1 : Plan::kConsumers;  // warpgroups that share a tile
  static constexpr int kTeams = Plan::kConsumers / kTeam;
  static constexpr int kAtoms = Plan::kTileM / 64 / kTeam;  // instructions along M of a warpgroup
  using Scheduler = typename Plan::Scheduler;
  using Tile = typename Scheduler::Tile;
  static constexpr bool kHasGroups = Tile::kHasGroup, kDiffersInK = Tile::kDiffersInK;
  using Output = Select<(Plan::kSplitK > 1), SplitKOutput<Plan, Epilogue, Parameters, kAtoms>,
                        WarpgroupOutput<Plan, Epilogue, Parameters, kAtoms, Tile>>;
  static_assert(!(kHasGroups || kDiffersInK) || Plan::kSplitK == 1, "groups are not split along K");
  static constexpr bool kMayBeEmpty = (kHasGroups || Tile::kIsIndependent) && (kTeam > 1 || kClusterCtas > 1);
  static constexpr bool kPlainLoadsA = is_same<typename OperandA::Source, GlobalMatrix>;
  static constexpr bool kPlainLoadsB = is_same<typename OperandB::Source, GlobalMatrix>;
  static constexpr bool kUsesPlainLoads = kPlainLoadsA || kPlainLoadsB;
  static_assert(!kUsesPlainLoads || kClusterCtas == 1, "plain loads have no multicast");
  static constexpr bool kRepacksA = kIsRepacked<typename OperandA::Source>;
  static constexpr bool kRepacksB = kIsRepacked<typename OperandB::Source>;
  using BatchA = TmaBatch<typename OperandA::Source, Plan::kTensorMapSlots>;
  using BatchB = TmaBatch<typename OperandB::Source, Plan::kTensorMapSlots>;
  static constexpr bool kMakesMaps = BatchA::kMakesMaps || BatchB::kMakesMaps;
  /// Whether operands stay in the stages while the tiles of a CTA need the same part.
  static constexpr bool kKeepsOperands = !kHasGroups && !kDiffersInK && !kMakesMaps && Plan::kSplitK == 1;
  static_assert(Plan::kTensorMapSlots > Plan::kStages, "a tensor map is overwritten after its loads have completed");
  static constexpr int kTmaBytes =
      (kPlainLoadsA ? 0 : OperandA::kTileBytes) + (kPlainLoadsB ? 0 : OperandB::kTileBytes);
  static constexpr int kProducerArrivals =
      (kTmaBytes > 0 ? 1 : 0) + (kUsesPlainLoads ? 4 : 0);  // one thread of each producer warp arrives
  using Ring = TmaRing<Plan::kStages, Plan::SharedMemory::kStageBytes, kTeam * Plan::kConsumerArrivals, kClusterCtas,
                       kProducerArrivals>;
  using Mainloop = typename Plan::template Mainloop<kAtoms>;
  using Turns = ConsumerTurns<kTeams, 1 + Plan::kConsumers>;

  static constexpr int kWarps = 4 * (1 + Plan::kConsumers);

  using Shared = typename Plan::SharedMemory;
  static constexpr int kLoadedBytes = OperandA::kTileBytes + OperandB::kTileBytes;  // of a stage
  static_assert(Shared::kStageBytes >= kLoadedBytes);
  static_assert(Shared::kOutputBytes == Output::kBytes && Shared::kStagingBytes == Output::kStagingBytes);
  static_assert(Shared::kOutputBarrierBytes == Output::kBarrierBytes);
  static_assert(Shared::kRepackingBytes >= RepackedOperand<OperandA>::kWarpBytes &&
                Shared::kRepackingBytes >= RepackedOperand<OperandB>::kWarpBytes);
  static_assert(Shared::kRingBarriers + Ring::kBarrierBytes <= Shared::kTensorMaps);
  static_assert(Shared::kTensorMaps + (BatchA::kMakesMaps + BatchB::kMakesMaps) * 128 <= Shared::kBytes);
  static_assert(!kMakesMaps || Shared::kTensorMaps % 128 == 0);

 public:
  __device__ __forceinline__ explicit Sm90Gemm(const Parameters& parameters)
      : parameters_(parameters),
        warpgroup_(__shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 128, 0)),
        k_part_(static_cast<int>(blockIdx.x) / kClusterCtas % Plan::kSplitK) {
    const int64_t k_tiles = ceil_div(parameters.k, Plan::kTileK);
    first_k_tile_ = static_cast<int>(k_tiles * k_part_ / Plan::kSplitK);
    k_tiles_ = static_cast<int>(k_tiles * (k_part_ + 1) / Plan::kSplitK) - first_k_tile_;
  }

  __device__ __forceinline__ void run() {
    extern __shared__ __align__(1024) unsigned char shared_memory[];
    const uint32_t shared = ptx::shared_address(shared_memory);
    const Ring ring(shared, shared + Shared::kRingBarriers);
    if (threadIdx.x == 0) prepare(ring, shared + Shared::kOutputBarriers);
    begin();
    ptx::wait_for_dependencies();
    if constexpr (kRepacksA || kRepacksB) repack(shared);
    if constexpr (kHasGroups) Scheduler::template prepare<32 * kWarps>(parameters_, shared + Shared::kGroups);
    if (warpgroup_ == 0) {
      ptx::setmaxnreg_decrease<Plan::kProducerRegisters>();
      if constexpr (kUsesPlainLoads) {
        load_plain(ring, shared);
      } else if constexpr (kMakesMaps) {
        if (threadIdx.x < 32) produce(ring, shared, ptx::elect());
      } else if constexpr (Plan::kSharedTaps > 1) {
        if (threadIdx.x < 32 && ptx::elect()) produce_window_rows(ring, tiles(shared));
      } else {
        if (threadIdx.x < 32 && ptx::elect()) produce(ring, shared, true);
      }
    } else {
      ptx::setmaxnreg_increase<Plan::kConsumerRegisters>();
      consume(ring, shared);
    }
  }

 private:
  /// Must be called by one thread.
  __device__ __forceinline__ void prepare(const Ring& ring, uint32_t output_barriers) const {
    if constexpr (!kPlainLoadsA) ptx::tma_prefetch(tma_matrix(parameters_.a));
    if constexpr (!kPlainLoadsB) ptx::tma_prefetch(tma_matrix(parameters_.b));
    if constexpr (is_same<typename Plan::Output, TmaMatrix> || kIsTmaIm2col<typename Plan::Output>)
      ptx::tma_prefetch(tma_matrix(parameters_.d));
    ring.initialise();
    for (int i = 0; i < Plan::kConsumers; ++i) Output::initialise(output_barriers + i * Output::kBarrierBytes);
    ptx::fence_mbarrier_init();
  }

  /// Waits until the ring is prepared. A producer thread that loads for its own CTA alone arrives without waiting.
  __device__ __forceinline__ void begin() const {
    if constexpr (kClusterCtas > 1 || kUsesPlainLoads || kRepacksA || kRepacksB) {
      synchronize();
    } else {
      constexpr int kBarrier = 1 + Plan::kConsumers + kTeams;  // consumers and turns have those before
      constexpr int kThreads = 32 + 128 * Plan::kConsumers;
      if (warpgroup_ != 0) {
        ptx::named_barrier(kBarrier, kThreads);
      } else if (threadIdx.x < 32) {
        __syncwarp();
        ptx::named_barrier_arrive(kBarrier, kThreads);
      }
    }
  }

  static __device__ __forceinline__ void synchronize() {
    if constexpr (kClusterCtas > 1) {
      ptx::cluster_sync();
    } else {
      __syncthreads();
    }
  }

  /// Must be called by all threads of the grid, which wait for each other at the end. TMA reads what threads wrote to
  /// the copies and overwrites what they left in shared memory, so there are proxy fences on both sides of the barrier.
  __device__ __forceinline__ void repack(uint32_t shared) const {
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t number = blockIdx.x * kWarps + warp;
    const uint32_t warps = gridDim.x * kWarps;
    const uint32_t own = shared + warp * Shared::kRepackingBytes;
    RepackedOperand<OperandA>(parameters_.a, parameters_.workspace, parameters_.m, parameters_.k,
                              parameters_.batch_step_a == 0 ? 1 : parameters_.batches)
        .copy(own, number, warps);
    RepackedOperand<OperandB>(parameters_.b, parameters_.workspace, parameters_.n, parameters_.k,
                              parameters_.batch_step_b == 0 ? 1 : parameters_.batches)
        .copy(own, number, warps);
    ptx::fence_proxy_async_all();
    __syncthreads();
    if (threadIdx.x == 0) {
      char* const counter = parameters_.workspace + Plan::kCounterBytes -
                            GridBarrier::kCounterStep;  // the last counter; split-K uses the first ones
      GridBarrier all(reinterpret_cast<uint32_t*>(counter), static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
      all.arrive();
      all.wait();
    }
    synchronize();
    ptx::fence_proxy_async_all();
  }

  __device__ __forceinline__ Scheduler tiles([[maybe_unused]] uint32_t shared) const {
    if constexpr (kHasGroups) {
      static_assert(Shared::kGroupBytes == Scheduler::kSharedBytes);
      return {parameters_, shared + Shared::kGroups};
    } else if constexpr (Tile::kIsIndependent) {
      return {parameters_, parameters_.batches};
    } else if constexpr (kDiffersInK) {
      return Scheduler(parameters_);
    } else {
      return {parameters_.tiles, parameters_.batches};
    }
  }

  __device__ __forceinline__ BatchA batch_a(uint32_t shared) const {
    return {parameters_.a, parameters_.batch_step_a, shared + Shared::kTensorMaps, parameters_.workspace};
  }
  __device__ __forceinline__ BatchB batch_b(uint32_t shared) const {
    return {parameters_.b, parameters_.batch_step_b, shared + Shared::kTensorMaps + (BatchA::kMakesMaps ? 128 : 0),
            parameters_.workspace};
  }

  /// The number of stages of a tile, at least 1: a tile without K multiplies one stage of zeros. If the accumulators of
  /// such a tile were set to zero by other instructions than wgmma, ptxas would wait after each wgmma of the others
  /// (C7515), or spill their accumulators.
  __device__ __forceinline__ int k_tiles([[maybe_unused]] const Tile& tile) const {
    if constexpr (kDiffersInK) {
      return max(ceil_div(tile.extent_k(parameters_.k), Plan::kTileK), 1);
    } else {
      return k_tiles_;
    }
  }
  /// The element of K at which the first stage of a tile begins. That of a tile without K lies behind the end of the
  /// operands, where TMA loads zeros; it is a multiple of kTileK, because boxes begin at multiples of 16 bytes.
  __device__ __forceinline__ int begin_k(const Tile& tile) const {
    if constexpr (kDiffersInK) {
      const int behind_k = ceil_div(parameters_.k, Plan::kTileK) * Plan::kTileK;
      return tile.extent_k(parameters_.k) > 0 ? tile.begin_k() : behind_k;
    } else {
      return first_k_tile_ * Plan::kTileK;
    }
  }

  static constexpr int kRowBytes = OperandA::kTileBytes / Plan::kTileM;  // of a stage, along K
  /// Whether the stages of a tile walk along the taps of an im2col matrix. Parts of a line of L2, which has 128 bytes,
  /// are read one after the other.
  template <class Operand>
  static constexpr bool kWalksTaps = kRowBytes >= 128 && Operand::kIsKMajor && (kIsTmaIm2col<typename Operand::Source>);

  /// The order in which the producer loads the stages of a tile.
  __device__ __forceinline__ KOrder<Plan::kTileK> k_order([[maybe_unused]] const BatchA& batch_a,
                                                          [[maybe_unused]] const BatchB& batch_b,
                                                          const Tile& tile) const {
    if constexpr (kWalksTaps<OperandA>) {
      return {batch_a.map(tile.batch), begin_k(tile)};
    } else if constexpr (kWalksTaps<OperandB>) {
      return {batch_b.map(tile.batch), begin_k(tile)};
    } else {
      return KOrder<Plan::kTileK>(begin_k(tile));
    }
  }

  /// The column of B at which the loads of a tile begin.
  __device__ __forceinline__ int column_of_pixels(const Tile& tile) const {
    if constexpr (kIsTapColumns<typename Plan::Output>) {
      return Plan::Output::column_of_pixels(parameters_.b, tile.n);
    } else {
      return tile.n;
    }
  }

  /// Must be called by a whole warp if tensor maps are made: makes those of the matrix of `tile`, unless they are
  /// `selected`. TileOfLoads is Tile or StageOrigin.
  template <class TileOfLoads>
  static __device__ __forceinline__ void select(BatchA& a, BatchB& b, [[maybe_unused]] int& selected,
                                                [[maybe_unused]] const TileOfLoads& tile) {
    if constexpr (kMakesMaps) {
      if (tile.batch == selected) return;
      selected = tile.batch;
      a.replace(tile);
      b.replace(tile);
      __syncwarp();
      a.publish();
      b.publish();
      a.acquire();
      b.acquire();
    }
  }

  /// The shares of the tiles of A and B that this CTA loads. CTAs of a cluster that differ only in N need the same tile
  /// of A, and those that differ only in M need the same tile of B.
  struct Shares {
    OperandShare a, b;
  };
  static __device__ __forceinline__ Shares shares() {
    const int rank = kClusterCtas > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
    const int cta_m = rank % Plan::kClusterM;
    const int cta_n = rank / Plan::kClusterM % Plan::kClusterN;
    uint32_t same_m = 0;
#pragma unroll
    for (int n = 0; n < Plan::kClusterN; ++n) same_m |= 1U << (cta_m + n * Plan::kClusterM);
    const uint32_t same_n = ((1U << Plan::kClusterM) - 1U) << (cta_n * Plan::kClusterM);
    return {{cta_n, static_cast<uint16_t>(same_m)}, {cta_m, static_cast<uint16_t>(same_n)}};
  }

  /// The operands of a tile that the producer loads; the others are in the stages already. CTAs of a cluster have tiles
  /// in the same order, so that they agree.
  class Loads {
   public:
    __device__ __forceinline__ explicit Loads(int steps) : kept_a_(steps), kept_b_(steps) {}

    __device__ __forceinline__ void begin(const Tile& tile, int batch_a, int batch_b) {
      if constexpr (kKeepsOperands) {
        loads_a_ = !kept_a_.begin(tile.m, batch_a);
        loads_b_ = !kept_b_.begin(tile.n, batch_b);
      }
    }
    __device__ __forceinline__ bool has_a() const { return loads_a_; }
    __device__ __forceinline__ bool has_b() const { return loads_b_; }
    __device__ __forceinline__ uint32_t bytes() const {
      return (has_a() ? OperandA::kTileBytes : 0) + (has_b() ? OperandB::kTileBytes : 0);
    }

   private:
    KeptOperand<Plan::kStages> kept_a_, kept_b_;
    bool loads_a_ = true, loads_b_ = true;
  };

  /// Waits until the stage at `at` may be written and expects the loads of a tile. Returns its shared address.
  static __device__ __forceinline__ uint32_t begin_stage(const Ring& ring, const typename Ring::Position& at,
                                                         const Loads& loads) {
    ring.begin_write(at, loads.bytes());
    return ring.stage(at.stage);
  }

  /// The loop of the producer thread, which issues TMA loads. If tensor maps are made, a whole warp must call it, in
  /// which one thread `issues` the loads.
  __device__ __forceinline__ void produce(const Ring& ring, uint32_t shared, bool issues) const {
    const Shares shares = this->shares();
    BatchA batch_a = this->batch_a(shared);
    BatchB batch_b = this->batch_b(shared);
    int selected = -1;
    Scheduler tiles = this->tiles(shared);
    Loads loads(k_tiles_);
    typename Ring::Position at;
    for (Tile tile; tiles.next(tile);) {
      const int k_tiles = this->k_tiles(tile);
      select(batch_a, batch_b, selected, tile);
      loads.begin(tile, batch_a.coordinate(tile.batch), batch_b.coordinate(tile.batch));
      const TmaOperand<OperandA> a(batch_a.map(tile.batch), shares.a, parameters_.policy_a);
      const TmaOperand<OperandB> b(batch_b.map(tile.batch), shares.b, parameters_.policy_b);
      if (issues) {
        KOrder<Plan::kTileK> order = k_order(batch_a, batch_b, tile);
        const int first_n = column_of_pixels(tile);
#pragma unroll 1  // unrolled by four, a producer of 24 registers spilled
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile, order.advance()) {
          const uint32_t stage = begin_stage(ring, at, loads);
          const int k = order.k();
          if (loads.has_a()) a.load(stage, ring.full(at.stage), tile.m, k, batch_a.coordinate(tile.batch));
          if (loads.has_b())
            b.load(stage + OperandA::kTileBytes, ring.full(at.stage), first_n, k, batch_b.coordinate(tile.batch));
          at.advance();
        }
      }
      if constexpr (kMakesMaps) __syncwarp();
    }
    ptx::launch_dependents();
    if constexpr (kClusterCtas > 1) {
      if (issues) ring.wait_for_all_readers(at);
    }
  }

  /// The same loop where the taps of a row of the window share pixels: a stage is a row of the window.
  __device__ __forceinline__ void produce_window_rows(const Ring& ring, Scheduler tiles) const {
    const Shares shares = this->shares();
    Loads loads(k_tiles_);
    typename Ring::Position at;
    for (Tile tile; tiles.next(tile);) {
      loads.begin(tile, 0, 0);
      const WindowRowOperand<Plan, OperandA> a(parameters_.a, tile.m, shares.a, parameters_.policy_a);
      const WindowRowOperand<Plan, OperandB> b(parameters_.b, tile.n, shares.b, parameters_.policy_b);
      WindowRow<Plan::kTileK / Plan::kSharedTaps> row((a.kHasPixels ? parameters_.a : parameters_.b).h.taps);
#pragma unroll 1
      for (int k_tile = 0; k_tile < k_tiles_; ++k_tile, row.advance(), at.advance()) {
        const uint32_t stage = begin_stage(ring, at, loads);
        if (loads.has_a()) a.load(stage, ring.full(at.stage), row);
        if (loads.has_b()) b.load(stage + OperandA::kTileBytes, ring.full(at.stage), row);
      }
    }
    ptx::launch_dependents();
    if constexpr (kClusterCtas > 1) ring.wait_for_all_readers(at);
  }

  /// The loop of the producer warpgroup with plain loads. All its threads must call it.
  __device__ __forceinline__ void load_plain(const Ring& ring, uint32_t shared) const {
    Scheduler tiles = this->tiles(shared);
    Tile tile;
    if (!tiles.next(tile)) return;
    BatchA batch_a = this->batch_a(shared);
    BatchB batch_b = this->batch_b(shared);
    [[maybe_unused]] int selected = -1;
    PlainLoadStage<OperandA, OperandB, Plan::kPlainLoadWords> operands(parameters_.a, parameters_.b, parameters_.m,
                                                                       parameters_.n, parameters_.k);
    int k_tile = first_k_tile_;
    StageOrigin next{tile.m, tile.n, k_tile * Plan::kTileK, tile.batch};
    operands.begin(next);
    typename Ring::Position at;
    for (bool has_next = true; has_next; at.advance()) {
      const StageOrigin here = next;
      if (++k_tile == first_k_tile_ + k_tiles_) {
        k_tile = first_k_tile_;
        has_next = tiles.next(tile);
      }
      next = {tile.m, tile.n, k_tile * Plan::kTileK, tile.batch};
      ring.wait_for_readers(at);
      __syncwarp();
      if constexpr (kTmaBytes > 0) {
        if (threadIdx.x < 32) select(batch_a, batch_b, selected, here);
        if (threadIdx.x == 0) load_rest(ring, batch_a, batch_b, at.stage, here);
        __syncwarp();
      }
      operands.store(ring.stage(at.stage), here, has_next, next);
      ring.end_write(at.stage);
    }
    ptx::launch_dependents();
  }

  /// Must be called by one thread. If TMA loads one of the stage's operands, issues its loads.
  __device__ __forceinline__ void load_rest(const Ring& ring, [[maybe_unused]] const BatchA& batch_a,
                                            [[maybe_unused]] const BatchB& batch_b, int stage,
                                            const StageOrigin& from) const {
    ptx::mbarrier_arrive_expect(ring.full(stage), kTmaBytes);
    if constexpr (!kPlainLoadsA) {
      TmaOperand<OperandA>(batch_a.map(from.batch), {0, 1}, parameters_.policy_a)
          .load(ring.stage(stage), ring.full(stage), from.m, from.k, batch_a.coordinate(from.batch));
    }
    if constexpr (!kPlainLoadsB) {
      TmaOperand<OperandB>(batch_b.map(from.batch), {0, 1}, parameters_.policy_b)
          .load(ring.stage(stage) + OperandA::kTileBytes, ring.full(stage), from.n, from.k,
                batch_b.coordinate(from.batch));
    }
  }

  __device__ __forceinline__ void consume(const Ring& ring, uint32_t shared) const {
    Scheduler tiles = this->tiles(shared);
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const int consumer = warpgroup_ - 1;
    const int first_atom = consumer % kTeam * kAtoms;
    Output output(parameters_, shared + Shared::kOutputs, shared + Shared::kStaging, shared + Shared::kOutputBarriers,
                  thread, 1 + consumer);
    typename Ring::Position at;
    Turns turns(consumer / kTeam);
    if constexpr (kTeams > 1) skip(tiles, at, consumer / kTeam);
    for (Tile tile; tiles.next(tile);) {
      if constexpr (kMayBeEmpty) {
        if (is_empty(tile, first_atom)) {
          turns.begin();
          pass(ring, at, k_tiles(tile), thread, 1 + consumer);
          turns.end();
          if constexpr (kTeams > 1) skip(tiles, at, kTeams - 1);
          continue;
        }
      }
      typename Mainloop::Accumulators accumulators;
      output.begin(tile.m + first_atom * 64, tile.n, tile);
      const int k_tiles = this->k_tiles(tile);
      turns.begin();
      const int last = Mainloop::multiply(accumulators, ring, at, k_tiles, first_atom, thread);
      turns.end();
      Mainloop::finish(ring, last, thread);
      output.store(accumulators, tile.m + first_atom * 64, tile.n, tile);
      if constexpr (kTeams > 1) skip(tiles, at, kTeams - 1);
    }
    output.finish();
  }

  /// Whether this warpgroup has nothing to compute of a tile: the CTA's tile lies behind the end of its group, because
  /// those of a cluster are of one group, or the warpgroup's rows do. The instructions of the latter are skipped only
  /// if the group has no other tiles: a tile that is faster than others with which it shares an operand runs ahead of
  /// them, until L2 has lost what they need (64 groups of 51 to 205 rows: 1298 us without skipping, 1494 us with; H200,
  /// 2026-11-23).
  __device__ __forceinline__ bool is_empty(const Tile& tile, int first_atom) const {
    const int end_m = tile.end_m(parameters_.m);
    if (kClusterCtas > 1 && (tile.m >= end_m || tile.n >= tile.end_n(parameters_.n))) return true;
    return kTeam > 1 && tile.is_alone && tile.m + first_atom * 64 >= end_m;
  }

  /// Releases the stages of a tile as they arrive, without reading them. One warp does, so that the others cannot fall
  /// behind by more stages than the parity of a barrier tells apart.
  static __device__ __forceinline__ void pass(const Ring& ring, typename Ring::Position& at, int k_tiles, int thread,
                                              int barrier) {
    if (thread < 32) {
      typename Ring::Position passed = at;
#pragma unroll 1
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile, passed.advance()) {
        ring.begin_read(passed);
#pragma unroll
        for (int i = 0; i < Plan::kConsumerArrivals; ++i) ring.end_read(passed.stage, thread);
      }
    }
    at.skip(k_tiles);
    ptx::named_barrier(barrier, 128);
  }

  /// Skips `count` tiles, which other warpgroups compute, and their stages.
  __device__ __forceinline__ void skip(Scheduler& tiles, typename Ring::Position& at, int count) const {
    if constexpr (kDiffersInK) {
      Tile tile;
#pragma unroll 1
      for (int i = 0; i < count && tiles.next(tile); ++i) at.skip(k_tiles(tile));
    } else {
      tiles.skip(count);
      at.skip(count * k_tiles_);
    }
  }

  const Parameters& parameters_;
  int warpgroup_;
  int k_part_;
  int first_k_tile_, k_tiles_;  // this CTA's part of K
};

}  // namespace tilewright
