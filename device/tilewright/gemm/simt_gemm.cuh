// GEMM on CUDA cores: any element type, layout and alignment. One CTA computes one tile of D from a ring of
// shared-memory stages. A thread computes a few vectors along M times a few along N. The batch is in the grid's y and
// z.
#pragma once

#include "tilewright/copy/panel_copy.cuh"
#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/gemm/parameters.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/scheduler/raster.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Plan: OperandA, OperandB (also kIsPointerArray), Accumulator, ThreadTile, kTileM, kTileN, kTileK, kWarpsM, kWarpsN,
/// kStages, kStageBytes, kSharedBytes, Raster, and the members that OutputTile uses. The values come from
/// plan/simt_gemm. ThreadTile: kM x kN accumulators of a thread, in vectors of kVectorM and kVectorN; the first is at
/// row(thread) and column(thread) of the tile, the others row_step(i) and column_step(j) from it; kBandRows,
/// band_row(thread), row_of_band(row); see plan::SimtThreadTile.
template <class Plan, class Epilogue>
class SimtGemm {
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  using Stored = typename OperandA::Stored;
  using Accumulator = typename Plan::Accumulator;
  using Parameters = GemmParameters<typename Epilogue::Parameters>;

  static constexpr int kThreads = 32 * Plan::kWarpsM * Plan::kWarpsN;
  using ThreadTile = typename Plan::ThreadTile;
  static constexpr int kThreadM = ThreadTile::kM;
  static constexpr int kThreadN = ThreadTile::kN;
  static constexpr int kElementsA = OperandA::kTileElements;
  static constexpr int kStageElements = kElementsA + OperandB::kTileElements;
  static constexpr int kBandRows = ThreadTile::kBandRows;
  using Output = OutputTile<Plan, Epilogue, Parameters>;
  using Reductions = typename Output::template Reductions<kBandRows, kThreads>;

  // Shared memory holds the stages and, after the mainloop, the bands that the epilogue reduces.
  static_assert(Plan::kStageBytes == kStageElements * static_cast<int>(sizeof(Stored)));
  static_assert(Plan::kSharedBytes == maximum(Plan::kStages * Plan::kStageBytes, Reductions::kBytes));

 public:
  __device__ __forceinline__ explicit SimtGemm(const Parameters& parameters)
      : parameters_(parameters),
        batch_(batch_of_grid()),
        thread_(static_cast<int>(threadIdx.x)),
        m_(ThreadTile::row(thread_)),
        n_(ThreadTile::column(thread_)) {}

  __device__ __forceinline__ void run() {
    if (batch_ >= parameters_.batch) return;
    extern __shared__ __align__(128) unsigned char shared_memory[];
    Stored* const stages = reinterpret_cast<Stored*>(shared_memory);
    const TileCoordinate tile =
        Plan::Raster::tile(static_cast<int>(blockIdx.x), parameters_.tiles_m, parameters_.tiles_n);
    Accumulator accumulators[kThreadM][kThreadN] = {};
    multiply(accumulators, stages, tile.m * Plan::kTileM, tile.n * Plan::kTileN);
    store(accumulators, ptx::shared_address(shared_memory), tile.m * Plan::kTileM, tile.n * Plan::kTileN);
  }

 private:
  __device__ __forceinline__ void multiply(Accumulator (&accumulators)[kThreadM][kThreadN], Stored* stages, int m,
                                           int n) {
    using A = const typename OperandA::Element;
    using B = const typename OperandB::Element;
    PanelCopy<OperandA, kThreads> copy_a(
        matrix_of_batch<OperandA::kIsPointerArray, A>(parameters_.a, parameters_.batch_stride_a, batch_),
        parameters_.lda, m, parameters_.m, thread_);
    PanelCopy<OperandB, kThreads> copy_b(
        matrix_of_batch<OperandB::kIsPointerArray, B>(parameters_.b, parameters_.batch_stride_b, batch_),
        parameters_.ldb, n, parameters_.n, thread_);
    const int k_tiles = ceil_div(parameters_.k, Plan::kTileK);
    int k_left = parameters_.k;
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
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
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
          accumulators[i][column] += a[k % 2][i] * b[k % 2][column];
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

  __device__ __forceinline__ void store(const Accumulator (&accumulators)[kThreadM][kThreadN], uint32_t shared, int m,
                                        int n) const {
    const Output output(parameters_, batch_);
    const Reductions reductions = Output::template reductions<kBandRows, kThreads>(parameters_, shared);
    const typename Reductions::Block block{m, n, static_cast<int>(batch_), 0};
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
  uint32_t batch_;
  int thread_;
  int m_, n_;  // this thread's first row and column within the tile
};

}  // namespace tilewright
