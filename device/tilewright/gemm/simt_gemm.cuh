// GEMM on CUDA cores: any element type, layout and alignment. One CTA computes one tile of D from a ring of
// shared-memory stages. A thread computes a few vectors along M times a few along N. The batch is in the grid's y and
// z.
#pragma once

#include "tilewright/copy/panel_copy.cuh"
#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/gemm/parameters.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/scheduler/raster.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Plan: OperandA, OperandB, Accumulator, kTileM, kTileN, kTileK, kWarpsM, kWarpsN, kLanesM, kLanesN, kVectorM,
/// kVectorN, kStages, kStageBytes, kSharedBytes, Raster, and the members that OutputTile uses. The values
/// come from plan/simt_gemm.
template <class Plan, class Epilogue>
class SimtGemm {
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  using Stored = typename OperandA::Stored;
  using Accumulator = typename Plan::Accumulator;
  using Parameters = GemmParameters<typename Epilogue::Parameters>;

  static constexpr int kThreads = 32 * Plan::kWarpsM * Plan::kWarpsN;
  static constexpr int kWarpTileM = Plan::kTileM / Plan::kWarpsM;
  static constexpr int kWarpTileN = Plan::kTileN / Plan::kWarpsN;
  // A thread's vectors lie kStepM (kStepN) apart, so that a warp reads consecutive vectors of shared memory.
  static constexpr int kStepM = Plan::kLanesM * Plan::kVectorM;
  static constexpr int kStepN = Plan::kLanesN * Plan::kVectorN;
  static constexpr int kThreadM = kWarpTileM / Plan::kLanesM;  // elements of a thread along M
  static constexpr int kThreadN = kWarpTileN / Plan::kLanesN;
  static constexpr int kElementsA = OperandA::kLineElements * Plan::kTileK;
  static constexpr int kElementsB = OperandB::kLineElements * Plan::kTileK;
  static constexpr int kStageElements = kElementsA + kElementsB;
  static constexpr int kBandRows = Plan::kWarpsM * Plan::kLanesM;  // one of each thread
  using Output = OutputTile<Plan, Epilogue, Parameters>;
  using Reductions = typename Output::template Reductions<kBandRows, kThreads>;

  // Shared memory holds the stages and, after the mainloop, the bands that the epilogue reduces.
  static_assert(Plan::kStageBytes == kStageElements * static_cast<int>(sizeof(Stored)));
  static_assert(Plan::kSharedBytes == maximum(Plan::kStages * Plan::kStageBytes, Reductions::kBytes));

 public:
  __device__ __forceinline__ explicit SimtGemm(const Parameters& parameters)
      : parameters_(parameters), batch_(batch_of_grid()) {
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    const int lane = thread % 32;
    m_ = warp % Plan::kWarpsM * kWarpTileM + lane / Plan::kLanesN * Plan::kVectorM;
    n_ = warp / Plan::kWarpsM * kWarpTileN + lane % Plan::kLanesN * Plan::kVectorN;
  }

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
    const int thread = static_cast<int>(threadIdx.x);
    PanelCopy<OperandA, kThreads> copy_a(parameters_.a, batch_ * parameters_.batch_stride_a, parameters_.lda, m,
                                         parameters_.m, thread);
    PanelCopy<OperandB, kThreads> copy_b(parameters_.b, batch_ * parameters_.batch_stride_b, parameters_.ldb, n,
                                         parameters_.n, thread);
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
    load_vectors<Plan::kVectorM, kStepM>(a, stage + k * OperandA::kLineElements + m_);
    load_vectors<Plan::kVectorN, kStepN>(b, stage + kElementsA + k * OperandB::kLineElements + n_);
  }

  template <int kVector, int kStep, int kCount>
  static __device__ __forceinline__ void load_vectors(Stored (&to)[kCount], const Stored* from) {
#pragma unroll
    for (int i = 0; i < kCount / kVector; ++i) {
      const auto vector = *reinterpret_cast<const Vector<Stored, kVector>*>(from + i * kStep);
#pragma unroll
      for (int v = 0; v < kVector; ++v) to[i * kVector + v] = vector.element[v];
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
    const int band_row = m_ / kWarpTileM * Plan::kLanesM + m_ % kWarpTileM / Plan::kVectorM;
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
      const auto row_of = [&](int row) {
        return m + row / Plan::kLanesM * kWarpTileM + row % Plan::kLanesM * Plan::kVectorM +
               i / Plan::kVectorM * kStepM + i % Plan::kVectorM;
      };
#pragma unroll
      for (int j = 0; j < kThreadN; j += Plan::kVectorN) {
        Accumulator values[Plan::kVectorN];
#pragma unroll
        for (int v = 0; v < Plan::kVectorN; ++v) values[v] = accumulators[i][j + v];
        const int column = n_ + j / Plan::kVectorN * kStepN;
        output.store(row_of(band_row), n + column, values, reductions, band_row, column);
      }
      reductions.end_band(parameters_.epilogue, block, row_of, ptx::Synchronize{});
    }
    reductions.end(parameters_.epilogue, block, 0, ptx::Synchronize{});
  }

  const Parameters& parameters_;
  uint32_t batch_;
  int m_, n_;  // this thread's first row and column within the tile
};

}  // namespace tilewright
