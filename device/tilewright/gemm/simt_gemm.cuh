// GEMM on CUDA cores: any element type, layout and alignment. One CTA computes one tile of D from a ring of
// shared-memory stages; with split-K a group of CTAs computes one tile after another. A thread computes a few vectors
// along M times a few along N.
#pragma once

#include "tilewright/copy/panel_copy.cuh"
#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/epilogue/split_k_tile.cuh"
#include "tilewright/epilogue/staged_output.cuh"
#include "tilewright/gemm/parameters.cuh"
#include "tilewright/numeric/functions.cuh"
#include "tilewright/operand/matrix_layout.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/scheduler/grid_tiles.cuh"
#include "tilewright/scheduler/k_part.cuh"
#include "tilewright/scheduler/persistent.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Plan: OperandA, OperandB (also kIsPointerArray), Accumulator, ThreadTile, kTileM, kTileN, kTileK, kWarpsM, kWarpsN,
/// kStages, kStageBytes, kSharedBytes, kSplitK, Scheduler (of scheduler/, PersistentTiles with split-K), kRealignsRows,
/// and the members that OutputTile, the scheduler and, if rows are realigned, StagedOutput and, with split-K,
/// SplitKTile use. The values come from plan/simt_gemm. ThreadTile: kM x kN accumulators of a thread, in vectors of
/// kVectorM and kVectorN; the first is at row(thread) and column(thread) of the tile, the others row_step(i) and
/// column_step(j) from it; kBandRows, band_row(thread), row_of_band(row); see plan::SimtThreadTile.
template <class Plan, class Epilogue>
class SimtGemm {
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  using Stored = typename OperandA::Stored;
  using Accumulator = typename Plan::Accumulator;
  using Parameters = GemmParameters<typename Epilogue::Parameters, typename Plan::Groups>;
  using Tile = typename Plan::Scheduler::Tile;

  static constexpr int kThreads = 32 * Plan::kWarpsM * Plan::kWarpsN;
  using ThreadTile = typename Plan::ThreadTile;
  static constexpr int kThreadM = ThreadTile::kM;
  static constexpr int kThreadN = ThreadTile::kN;
  static constexpr int kElementsA = OperandA::kTileElements;
  static constexpr int kStageElements = kElementsA + OperandB::kTileElements;
  static constexpr int kBandRows = ThreadTile::kBandRows;
  using Output = OutputTile<Plan, Epilogue, Parameters, Tile>;
  using Reductions = typename Output::template Reductions<kBandRows, kThreads>;
  using Shared = SplitKTile<Plan, Epilogue, Parameters, Accumulator>;
  struct Bands {
    static constexpr int kRows = kBandRows;
    static __device__ __forceinline__ int tile_row(int row, int i) {
      return ThreadTile::row_of_band(row) + ThreadTile::row_step(i);
    }
  };
  using Staged = StagedOutput<Plan, Epilogue, Parameters, Bands, Tile>;

  // Shared memory holds the stages and, after the mainloop, the bands that the epilogue stages and reduces.
  static __device__ constexpr int epilogue_bytes() {
    if constexpr (Plan::kRealignsRows) return Staged::kBytes;
    if constexpr (Plan::kSplitK == 1 && !Plan::kRealignsRows) return Reductions::kBytes;
    if constexpr (Plan::kSplitK > 1) return Shared::kSharedBytes;
  }
  static_assert(Plan::kStageBytes == kStageElements * static_cast<int>(sizeof(Stored)));
  static_assert(Plan::kSharedBytes == maximum(Plan::kStages * Plan::kStageBytes, epilogue_bytes()));

 public:
  __device__ __forceinline__ explicit SimtGemm(const Parameters& parameters)
      : parameters_(parameters),
        thread_(static_cast<int>(threadIdx.x)),
        m_(ThreadTile::row(thread_)),
        n_(ThreadTile::column(thread_)) {}

  __device__ __forceinline__ void run() {
    extern __shared__ __align__(128) unsigned char shared_memory[];
    Stored* const stages = reinterpret_cast<Stored*>(shared_memory);
    const uint32_t shared = ptx::shared_address(shared_memory);
    Tile tile;
    if constexpr (Plan::kSplitK == 1) {
      if (!Plan::Scheduler::find(parameters_, tile)) return;
      Accumulator accumulators[kThreadM][kThreadN] = {};
      multiply(accumulators, stages, tile, 0);
      if constexpr (Plan::kRealignsRows) {
        store_staged(accumulators, shared_memory, tile);
      } else {
        store(accumulators, shared, tile);
      }
    } else {
      typename Plan::Scheduler tiles(parameters_.tiles, static_cast<int>(parameters_.batch));
      Shared sums(parameters_, shared);
#pragma unroll 1
      while (tiles.next(tile)) {
        Accumulator accumulators[kThreadM][kThreadN] = {};
        multiply(accumulators, stages, tile, sums.k_part());
        put(accumulators, sums);
        sums.share(tile.m, tile.n, tile.batch);
      }
    }
  }

 private:
  __device__ __forceinline__ void multiply(Accumulator (&accumulators)[kThreadM][kThreadN], Stored* stages,
                                           const Tile& tile, int part) {
    using A = const typename OperandA::Element;
    using B = const typename OperandB::Element;
    const KPart k = k_part<Plan::kTileK, Plan::kSplitK>(tile.extent_k(parameters_.k), part);
    const int begin_k = tile.begin_k() + k.begin;
    PanelCopy<OperandA, kThreads> copy_a(
        matrix_of_batch<OperandA::kIsPointerArray, A>(parameters_.a, parameters_.batch_stride_a, tile.batch) +
            along_k<OperandA>(begin_k, parameters_.lda),
        parameters_.lda, tile.m, tile.end_m(parameters_.m), thread_);
    PanelCopy<OperandB, kThreads> copy_b(
        matrix_of_batch<OperandB::kIsPointerArray, B>(parameters_.b, parameters_.batch_stride_b, tile.batch) +
            along_k<OperandB>(begin_k, parameters_.ldb),
        parameters_.ldb, tile.n, tile.end_n(parameters_.n), thread_);
    int k_left = k.extent;
    int write_stage = 0;
    const auto start_copy = [&] {
      Stored* const to = stages + write_stage * kStageElements;
      copy_a.start(to, k_left);
      copy_b.start(to + kElementsA, k_left);
      ptx::cp_async_commit();
    };
    const auto finish_copy = [&] {
      Stored* const to = stages + write_stage * kStageElements;
      copy_a.finish(to);
      copy_b.finish(to + kElementsA);
      k_left -= Plan::kTileK;
      write_stage = write_stage + 1 == Plan::kStages ? 0 : write_stage + 1;
    };
#pragma unroll 1
    for (int stage = 0; stage < Plan::kStages - 1; ++stage) {
      start_copy();
      finish_copy();
    }
    int read_stage = 0;
    for (int k_tile = 0; k_tile < k.tiles; ++k_tile) {
      ptx::cp_async_wait<Plan::kStages - 2>();
      __syncthreads();  // this stage has arrived, and all threads have read the stage that is written next
      start_copy();
      multiply_tile(accumulators, stages + read_stage * kStageElements);
      finish_copy();
      read_stage = read_stage + 1 == Plan::kStages ? 0 : read_stage + 1;
    }
    ptx::cp_async_wait<0>();
  }

  __device__ __forceinline__ void multiply_tile(Accumulator (&accumulators)[kThreadM][kThreadN],
                                                const Stored* stage) const {
    Stored a[2][kThreadM];
    Stored b[2][kThreadN];
    load(a[0], b[0], stage, 0);
#pragma unroll
    for (int k = 0; k < Plan::kTileK; ++k) {
      if (k + 1 < Plan::kTileK) load(a[(k + 1) % 2], b[(k + 1) % 2], stage, k + 1);
#pragma unroll
      for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < kThreadN; ++j) {
          const int column = i % 2 == 0 ? j : kThreadN - 1 - j;
          accumulators[i][column] = numeric::fma(a[k % 2][i], b[k % 2][column], accumulators[i][column]);
        }
      }
    }
  }

  __device__ __forceinline__ void load(Stored (&a)[kThreadM], Stored (&b)[kThreadN], const Stored* stage, int k) const {
    load_vectors<ThreadTile::kVectorM, ThreadTile::row_step>(a, stage + k * OperandA::kLineElements + m_);
    load_vectors<ThreadTile::kVectorN, ThreadTile::column_step>(b,
                                                                stage + kElementsA + k * OperandB::kLineElements + n_);
  }

  template <int kVector, int (*kStep)(int), int kCount>
  static __device__ __forceinline__ void load_vectors(Stored (&to)[kCount], const Stored* from) {
#pragma unroll
    for (int i = 0; i < kCount; i += kVector) {
      const auto vector = *reinterpret_cast<const Vector<Stored, kVector>*>(from + kStep(i));
#pragma unroll
      for (int v = 0; v < kVector; ++v) to[i + v] = vector.element[v];
    }
  }

  /// Puts this thread's accumulators to where the CTAs of the tile sum them.
  __device__ __forceinline__ void put(const Accumulator (&accumulators)[kThreadM][kThreadN], const Shared& sums) const {
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadN; j += ThreadTile::kVectorN) {
        Accumulator values[ThreadTile::kVectorN];
#pragma unroll
        for (int v = 0; v < ThreadTile::kVectorN; ++v) values[v] = accumulators[i][j + v];
        sums.put(m_ + ThreadTile::row_step(i), n_ + ThreadTile::column_step(j), values);
      }
    }
  }

  __device__ __forceinline__ void store_staged(const Accumulator (&accumulators)[kThreadM][kThreadN], void* shared,
                                               const Tile& tile) const {
    const Staged output(parameters_, tile, shared);
    __syncthreads();  // the stages have been read
    output.begin();
    // The loop is not unrolled, so that the epilogue's code exists once; accumulators are still indexed by constants.
#pragma unroll 1
    for (int band = 0; band < kThreadM; ++band) {
#pragma unroll
      for (int i = 0; i < kThreadM; ++i) {
        if (i == band) stage(output, accumulators[i]);
      }
      output.store(band);
    }
    output.end();
  }

  __device__ __forceinline__ void stage(const Staged& output, const Accumulator (&row)[kThreadN]) const {
#pragma unroll
    for (int j = 0; j < kThreadN; j += ThreadTile::kVectorN) {
      Accumulator values[ThreadTile::kVectorN];
#pragma unroll
      for (int v = 0; v < ThreadTile::kVectorN; ++v) values[v] = row[j + v];
      output.stage(ThreadTile::band_row(thread_), n_ + ThreadTile::column_step(j), values);
    }
  }

  __device__ __forceinline__ void store(const Accumulator (&accumulators)[kThreadM][kThreadN], uint32_t shared,
                                        const Tile& tile) const {
    const int m = tile.m, n = tile.n;
    const Output output(parameters_, tile);
    const Reductions reductions = Output::template reductions<kBandRows, kThreads>(parameters_, shared);
    const typename Reductions::Block block{m, n, tile.batch, 0};
    if constexpr (Epilogue::kReductions > 0) {
      __syncthreads();  // the stages have been read
      reductions.begin(parameters_.epilogue);
    }
    const int band_row = ThreadTile::band_row(thread_);
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
      const auto row_of = [&](int row) { return m + ThreadTile::row_of_band(row) + ThreadTile::row_step(i); };
#pragma unroll
      for (int j = 0; j < kThreadN; j += ThreadTile::kVectorN) {
        Accumulator values[ThreadTile::kVectorN];
#pragma unroll
        for (int v = 0; v < ThreadTile::kVectorN; ++v) values[v] = accumulators[i][j + v];
        const int column = n_ + ThreadTile::column_step(j);
        output.store(m + m_ + ThreadTile::row_step(i), n + column, values, reductions, band_row, column);
      }
      reductions.end_band(parameters_.epilogue, block, row_of, ptx::Synchronize{});
    }
    reductions.end(parameters_.epilogue, block, 0, ptx::Synchronize{});
  }

  const Parameters& parameters_;
  int thread_;
  int m_, n_;  // this thread's first row and column within the tile
};

}  // namespace tilewright
