// The epilogue with split-K, where several CTAs computed the accumulators of one tile. Each CTA stores the share of the
// tile that it summed, directly from registers.
#pragma once

#include "tilewright/epilogue/band_reductions.cuh"
#include "tilewright/epilogue/split_k_sum.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/global_matrix.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A warpgroup has kAtoms times 64 rows. Plan: Wgmma, ElementC, ElementD, kCIsRowMajor, kDIsRowMajor, kCIsPointerArray,
/// kDIsPointerArray, AccumulatorTile, SharedMemory, kConsumers, kClusterM, kClusterN, kClusterK (kSplitK if the CTAs of
/// a tile are a cluster, else 1), kSplitK, kCounterBytes (of the workspace), kReductionCounters (an offset in it),
/// kStoreBytes (to which D's lines are aligned). Parameters of the kernel: c, d, m, n, batches, workspace,
/// reduction_parts, epilogue.
template <class Plan, class Epilogue, class Parameters, int kAtoms>
class SplitKOutput {
  using C = typename Plan::ElementC;
  using D = typename Plan::ElementD;
  using Compute = typename Epilogue::Compute;
  using Rows = typename Plan::AccumulatorTile;
  using Sum = SplitKSum<typename Plan::Wgmma::Accumulator, Plan::kSplitK, Plan::Wgmma::kRegisters>;
  using Quad = typename Sum::Quad;
  using Pair = Vector<D, 2>;
  static constexpr int kClusterCtas = Plan::kClusterM * Plan::kClusterN;
  static constexpr bool kIsCluster = Plan::kClusterK > 1;
  static_assert(!kIsCluster || (Plan::kClusterK == Plan::kSplitK && kClusterCtas == 1));
  using Partials = Select<kIsCluster, typename Sum::Cluster, typename Sum::Global>;
  static constexpr int kThreads = 128;
  static constexpr int kPerElement = Epilogue::kColumnsPerElement;
  static constexpr int kShareColumns = minimum(Plan::kTileN, Sum::kShareGroups * 8);
  using Reductions = BandReductions<Epilogue, 64, kShareColumns, 64, Plan::kTileN, Plan::kSplitK, kThreads>;

 public:
  static constexpr int kBytes = Sum::kSharedBytes;  // shared memory of a warpgroup
  // A cluster reuses the stages, from the beginning of shared memory, for its partial sums.
  static_assert(!kIsCluster || Plan::kConsumers * kAtoms * Sum::kPartialBytes <= Plan::SharedMemory::kOutputs);
  static constexpr int kStagingBytes = Reductions::kBytes;
  static constexpr int kBarrierBytes = 0;

  static __device__ __forceinline__ void initialise(uint32_t /*barriers*/) {}

  /// `shared` is the address of kBytes for each consumer warpgroup. `barrier` is this warpgroup's named barrier; the
  /// first consumer has number 1.
  __device__ __forceinline__ SplitKOutput(const Parameters& parameters, uint32_t shared, uint32_t vectors,
                                          uint32_t /*barriers*/, int thread, int barrier)
      : parameters_(parameters),
        sum_(k_part(), shared + (barrier - 1) * kBytes, thread, barrier),
        partials_(partials(parameters, shared - Plan::SharedMemory::kOutputs, thread, barrier)),
        reductions_(parameters.epilogue, parameters.workspace + Plan::kReductionCounters,
                    parameters.workspace + parameters.reduction_parts, parameters.m, parameters.n, parameters.batches,
                    vectors + (barrier - 1) * kStagingBytes, thread),
        thread_(thread),
        barrier_(barrier) {}

  __device__ __forceinline__ void begin(int /*row*/, int /*column*/, const TileOrigin& /*tile*/) const {}

  /// Adds the partial sums of the tile's other CTAs and stores this CTA's share of the rows from `row` on.
  template <class Accumulators>
  __device__ __forceinline__ void store(const Accumulators (&accumulators)[kAtoms], int row, int column,
                                        const TileOrigin& tile) {
    const int batch = tile.batch;
    if constexpr (kIsCluster) publish(accumulators);
#pragma unroll
    for (int i = 0; i < kAtoms; ++i, row += 64) {
      if (row >= parameters_.m) break;
      const int first_column = sum_.first_quad() / kThreads * 8;
      begin_reductions();
      if constexpr (!kIsCluster) {
        partials_.begin();
        sum_.put(accumulators[i], partials_);
        partials_.publish();
      }
      sum_.add(partials_of(i), [&](const Quad& sums, int quad) {
        const int thread = quad % kThreads;
        const int along = quad / kThreads * 8 + Rows::column(thread);
        store_quad(sums, row + Rows::row(thread), column + along, batch, Rows::row(thread), along - first_column);
      });
      end_reductions(row, column, batch, first_column);
    }
  }

  /// Waits until no other CTA reads this one's partial sums.
  __device__ __forceinline__ void finish() const {
    if constexpr (kIsCluster) ptx::cluster_sync();
  }

 private:
  /// Stores the partial sums of all atoms where the stages were, which all consumer warpgroups have read, and waits for
  /// the cluster. A cluster computes one tile, so nothing is loaded to the stages afterwards.
  template <class Accumulators>
  __device__ __forceinline__ void publish(const Accumulators (&accumulators)[kAtoms]) const {
    constexpr int kAllConsumers = 1 + Plan::kConsumers;  // its number: each consumer has one of those before
    ptx::named_barrier(kAllConsumers, Plan::kConsumers * kThreads);
#pragma unroll
    for (int i = 0; i < kAtoms; ++i) sum_.put(accumulators[i], partials_of(i));
    ptx::cluster_sync();
  }

  /// The partial sums of 64 rows.
  __device__ __forceinline__ decltype(auto) partials_of(int atom) const {
    if constexpr (kIsCluster) {
      return Partials(partials_.address() + atom * Sum::kPartialBytes);
    } else {
      return (partials_);
    }
  }

  /// Fills the band with the identity, because only this CTA's share of it is stored there afterwards.
  __device__ __forceinline__ void begin_reductions() const {
    if constexpr (Epilogue::kReductions > 0) {
      reductions_.begin(parameters_.epilogue);
#pragma unroll 1
      for (int i = thread_; i < 64 * kShareColumns; i += kThreads)
        reductions_.template skip<1>(parameters_.epilogue, i / kShareColumns, i % kShareColumns);
      ptx::named_barrier(barrier_, kThreads);
    }
  }
  __device__ __forceinline__ void end_reductions(int row, int column, int batch, int first_column) const {
    if constexpr (Epilogue::kReductions > 0) {
      if (column >= parameters_.n) return;
      const auto barrier = [this] { ptx::named_barrier(barrier_, kThreads); };
      const typename Reductions::Block block{row, column, batch, sum_.k_part()};
      reductions_.end_band(
          parameters_.epilogue, block, [&](int in_band) { return row + in_band; }, barrier);
      reductions_.end(parameters_.epilogue, block, first_column, barrier);
    }
  }

  /// This CTA's part of K, which follows from scheduler/persistent.cuh.
  static __device__ __forceinline__ int k_part() { return static_cast<int>(blockIdx.x) / kClusterCtas % Plan::kSplitK; }
  /// The partial sums of this warpgroup and of the same warpgroup of the tile's other CTAs. `stages` is the address of
  /// the stages.
  static __device__ __forceinline__ Partials partials(const Parameters& parameters, [[maybe_unused]] uint32_t stages,
                                                      [[maybe_unused]] int thread, int barrier) {
    if constexpr (kIsCluster) {
      return Partials(stages + (barrier - 1) * kAtoms * Sum::kPartialBytes);
    } else {
      const int cta = static_cast<int>(blockIdx.x);
      const int tile = cta / (kClusterCtas * Plan::kSplitK) * kClusterCtas + cta % kClusterCtas;
      const int number = tile * Plan::kConsumers + barrier - 1;
      char* const of_all = parameters.workspace + Plan::kCounterBytes;
      return Partials(of_all + static_cast<int64_t>(number) * Partials::kBytes,
                      reinterpret_cast<uint32_t*>(parameters.workspace + number * GridBarrier::kCounterStep), k_part(),
                      thread, barrier);
    }
  }

  /// Stores four accumulators of one thread. The first is at (row, column) of D and at (band_row, band_column) of the
  /// band.
  __device__ __forceinline__ void store_quad(const Quad& sums, int row, int column, int batch, int band_row,
                                             int band_column) const {
    Compute source[4];
    read_source(source, row, column, batch);
    Pair out[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      Compute pair[2] = {convert<Compute>(sums.element[2 * i]), convert<Compute>(sums.element[2 * i + 1])};
      Epilogue::apply(pair, {source[2 * i], source[2 * i + 1]}, parameters_.epilogue,
                      BandPlace<Reductions>{{row + i * Rows::kOtherRow, column, batch, parameters_.m, parameters_.n},
                                            reductions_,
                                            band_row + i * Rows::kOtherRow,
                                            band_column});
      out[i] = convert_pair<D>(pair[0], pair[1]);
    }
    if constexpr (kPerElement == 2) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int y = row + i * Rows::kOtherRow, x = column / 2;
        store_one(out[i].element[0], Plan::kDIsRowMajor ? y : x, Plan::kDIsRowMajor ? x : y, batch);
      }
    } else if constexpr (Rows::kOtherRow == 1 &&
                         !Plan::kDIsRowMajor) {  // a column's elements are contiguous, so pairs are two rows
#pragma unroll
      for (int j = 0; j < 2; ++j) store_pair({out[0].element[j], out[1].element[j]}, column + j, row, batch);
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if constexpr (Plan::kDIsRowMajor) {
          store_pair(out[i], row + i * Rows::kOtherRow, column, batch);
        } else {
#pragma unroll
          for (int j = 0; j < 2; ++j) store_one(out[i].element[j], column + j, row + i * Rows::kOtherRow, batch);
        }
      }
    }
  }

  /// Loads the elements of C at the accumulators. They are zeros outside C, or if the epilogue does not read C.
  __device__ __forceinline__ void read_source(Compute (&source)[4], int row, int column, int batch) const {
    const GlobalMatrix& c = parameters_.c;
    const C* const from = matrix_of_batch<Plan::kCIsPointerArray, const C>(c.address, c.batch_stride, batch);
    const bool reads = Epilogue::kReadsSource && Epilogue::reads_source(parameters_.epilogue);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int y = row + i / 2 * Rows::kOtherRow;
      const int x = column + i % 2;
      source[i] = Compute(0);
      if (reads && y < parameters_.m && x < parameters_.n) {
        source[i] = convert<Compute>(from[Plan::kCIsRowMajor ? y * c.ld + x : y + x * c.ld]);
      }
    }
  }

  /// Stores elements `along` and `along` + 1 of D's line number `line`, leaving out those outside D.
  __device__ __forceinline__ void store_pair(const Pair& pair, int line, int along, int batch) const {
    if (Plan::kStoreBytes >= sizeof(Pair) && line < lines() && along + 1 < line_elements()) {
      *reinterpret_cast<Pair*>(address(line, along, batch)) = pair;
    } else {
      store_one(pair.element[0], line, along, batch);
      store_one(pair.element[1], line, along + 1, batch);
    }
  }
  __device__ __forceinline__ void store_one(D element, int line, int along, int batch) const {
    if (line < lines() && along < line_elements()) *address(line, along, batch) = element;
  }

  __device__ __forceinline__ int lines() const {
    return Plan::kDIsRowMajor ? parameters_.m : parameters_.n / kPerElement;
  }
  __device__ __forceinline__ int line_elements() const {
    return Plan::kDIsRowMajor ? parameters_.n / kPerElement : parameters_.m;
  }
  __device__ __forceinline__ D* address(int line, int along, int batch) const {
    const GlobalMatrix& d = parameters_.d;
    return matrix_of_batch<Plan::kDIsPointerArray, D>(d.address, d.batch_stride, batch) + line * d.ld + along;
  }

  const Parameters& parameters_;
  Sum sum_;
  Partials partials_;
  Reductions reductions_;
  int thread_, barrier_;
};

}  // namespace tilewright
