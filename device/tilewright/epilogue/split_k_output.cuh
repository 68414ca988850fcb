// The epilogue with split-K, where several CTAs computed the accumulators of one tile. Each CTA stores the share of the
// tile that it summed, directly from registers.
#pragma once

#include "tilewright/epilogue/band_reductions.cuh"
#include "tilewright/epilogue/split_k_sum.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/global_matrix.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/operand/tap_columns.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A warpgroup has kAtoms times 64 rows. Plan: Wgmma, ElementC, ElementD, kCIsRowMajor, kDIsRowMajor, kCIsPointerArray,
/// kDIsPointerArray, AccumulatorTile, kConsumers, kClusterM, kClusterN, kSplitK, kCounterBytes (of the workspace),
/// kReductionCounters (an offset in it), kStoreBytes (to which D's lines are aligned). Parameters of the kernel: c, d,
/// m, n, batches, workspace, reduction_parts, epilogue.
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
  static constexpr int kThreads = 128;
  static constexpr int kPerElement = Epilogue::kColumnsPerElement;
  static constexpr int kShareColumns = minimum(Plan::kTileN, Sum::kShareGroups * 8);
  using Reductions = BandReductions<Epilogue, 64, kShareColumns, 64, Plan::kTileN, Plan::kSplitK, kThreads>;

 public:
  static constexpr int kBytes = Sum::kSharedBytes;  // shared memory of a warpgroup
  static constexpr int kStagingBytes = Reductions::kBytes;
  static constexpr int kBarrierBytes = 0;

  static __device__ __forceinline__ void initialise(uint32_t /*barriers*/) {}

  /// `shared` is the address of kBytes for each consumer warpgroup. `barrier` is this warpgroup's named barrier; the
  /// first consumer has number 1.
  __device__ __forceinline__ SplitKOutput(const Parameters& parameters, uint32_t shared, uint32_t vectors,
                                          uint32_t /*barriers*/, int thread, int barrier)
      : parameters_(parameters),
        sum_(split_k_sum(parameters, shared + (barrier - 1) * kBytes, thread, barrier)),
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
#pragma unroll
    for (int i = 0; i < kAtoms; ++i, row += 64) {
      if (row >= parameters_.m) return;
      const int first_column = sum_.first_quad() / kThreads * 8;
      begin_reductions();
      sum_.exchange(accumulators[i], [&](const Quad& sums, int quad) {
        const int thread = quad % kThreads;
        const int along = quad / kThreads * 8 + Rows::column(thread);
        store_quad(sums, row + Rows::row(thread), column + along, batch, Rows::row(thread), along - first_column);
      });
      end_reductions(row, column, batch, first_column);
    }
  }

  __device__ __forceinline__ void finish() const {}

 private:
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
      const typename Reductions::Block block{row, column, TileOrigin{row, column, batch}, sum_.k_part()};
      reductions_.end_band(
          parameters_.epilogue, block, [&](int in_band) { return row + in_band; }, barrier);
      reductions_.end(parameters_.epilogue, block, first_column, barrier);
    }
  }

  /// The split-K sum over this warpgroup and the same warpgroup of the tile's other CTAs, whose numbers follow from
  /// scheduler/persistent.cuh.
  static __device__ __forceinline__ Sum split_k_sum(const Parameters& parameters, uint32_t shared, int thread,
                                                    int barrier) {
    const int cta = static_cast<int>(blockIdx.x);
    const int k_part = cta / kClusterCtas % Plan::kSplitK;
    const int tile = cta / (kClusterCtas * Plan::kSplitK) * kClusterCtas + cta % kClusterCtas;
    const int number = tile * Plan::kConsumers + barrier - 1;
    char* const partials = parameters.workspace + Plan::kCounterBytes;
    return Sum(partials + static_cast<int64_t>(number) * Sum::kBytes,
               reinterpret_cast<uint32_t*>(parameters.workspace + number * GridBarrier::kCounterStep), k_part, shared,
               thread, barrier);
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
    if constexpr (kIsTapColumns<typename Plan::Output>) {
      static_assert(Plan::kDIsRowMajor && kPerElement == 1 && Plan::kStoreBytes >= sizeof(Pair));
      const int place = parameters_.d.place(along);
      if (line >= lines() || along >= line_elements() || place < 0) return;
      D* const d = static_cast<D*>(const_cast<void*>(parameters_.d.address));
      *reinterpret_cast<Pair*>(d + line * parameters_.d.row + place) = pair;
    } else if (Plan::kStoreBytes >= sizeof(Pair) && line < lines() && along + 1 < line_elements()) {
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
  Reductions reductions_;
  int thread_, barrier_;
};

}  // namespace tilewright
