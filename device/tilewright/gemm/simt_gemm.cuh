// GEMM on CUDA cores: any element type, layout and alignment. One CTA computes one tile of D from a ring of
// shared-memory stages. With split-K a group of CTAs computes one tile after another, or CTAs add parts of K in turn. A
// thread computes a few vectors along M times a few along N.
#pragma once

#include "tilewright/copy/panel_copy.cuh"
#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/epilogue/split_k_in_turn.cuh"
#include "tilewright/epilogue/split_k_tile.cuh"
#include "tilewright/epilogue/staged_output.cuh"
#include "tilewright/gemm/parameters.cuh"
#include "tilewright/numeric/functions.cuh"
#include "tilewright/operand/folded_matrix.cuh"
#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/ptx/another_register.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/scheduler/grid_tiles.cuh"
#include "tilewright/scheduler/independent_tiles.cuh"
#include "tilewright/scheduler/k_part.cuh"
#include "tilewright/scheduler/parts_in_turn.cuh"
#include "tilewright/scheduler/persistent.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Plan: OperandA, OperandB (also kIsPointerArray), Accumulator, ThreadTile, kTileM, kTileN, kTileK, kWarpsM, kWarpsN,
/// kStages, kStageBytes, kSharedBytes, kCopyPhases, kCopyLag, kSplitK, kSplitsInTurn, Scheduler (of scheduler/;
/// PersistentTiles or PartsInTurn with split-K), kStagesRows, MatrixC, MatrixD, and the members that OutputTile, the
/// scheduler and, if rows are staged, StagedOutput and, with split-K, SplitKTile or SplitKInTurn use. The values come
/// from plan/simt_gemm. ThreadTile: kM x kN accumulators of a thread, in vectors of kVectorM and kVectorN; the first is
/// at row(thread) and column(thread) of the tile, the others row_step(i) and column_step(j) from it; kBandRows,
/// band_row(thread), row_of_band(row); see plan::SimtThreadTile.
template <class Plan, class Epilogue>
class SimtGemm {
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  using Stored = typename OperandA::Stored;
  using Accumulator = typename Plan::Accumulator;
  using Parameters = GemmParameters<typename Epilogue::Parameters, typename Plan::Groups, typename OperandA::Matrix,
                                    typename OperandB::Matrix, typename Plan::MatrixC, typename Plan::MatrixD>;
  using Tile = typename Plan::Scheduler::Tile;

  static constexpr int kThreads = 32 * Plan::kWarpsM * Plan::kWarpsN;
  using ThreadTile = typename Plan::ThreadTile;
  static constexpr int kThreadM = ThreadTile::kM;
  static constexpr int kThreadN = ThreadTile::kN;
  static constexpr int kElementsA = OperandA::kTileElements;
  static constexpr int kStageElements = kElementsA + OperandB::kTileElements;
  static constexpr int kBandRows = ThreadTile::kBandRows;
  using CopyA = PanelCopy<OperandA, kThreads>;
  using CopyB = PanelCopy<OperandB, kThreads>;
  static constexpr bool kIsStaged = OperandA::kIsStaged || OperandB::kIsStaged;
  static constexpr bool kIsAsync = OperandA::kIsAsync || OperandB::kIsAsync || kIsStaged;
  // Vectors are staged so many tiles before they are transposed, and tiles are transposed, or copied at once, so many
  // tiles before they are multiplied.
  static constexpr int kAhead = Plan::kStages - 1;
  static constexpr int kSlots = kAhead + 1;  // for the vectors of staged operands
  static constexpr int kRingBytes = Plan::kStages * Plan::kStageBytes;
  static constexpr int kStagedBytesA = CopyA::kStagedVectors * static_cast<int>(sizeof(typename CopyA::StagedVector));
  static constexpr int kStagedBytesB = CopyB::kStagedVectors * static_cast<int>(sizeof(typename CopyB::StagedVector));
  // Passes of the copies that go through registers: those of A, then those of B. A tile of the mainloop has kCopyPhases
  // phases of equal length along K. Each phase loads its share of the passes, and stores it at its end, so that few
  // elements are in registers at a time.
  static constexpr int kRegisterPasses = CopyA::kRegisterPasses + CopyB::kRegisterPasses;
  static constexpr int kPhases = Plan::kCopyPhases;
  // A phase's loads have the time of so many phases to arrive. The stores of a tile's last loads then follow while the
  // next tile is copied, before the tile is multiplied.
  static constexpr int kLag = Plan::kCopyLag;
  static_assert(kLag == 1 || (kLag <= kPhases && kLag < Plan::kStages));
  static_assert(Plan::kTileK % kPhases == 0);
  using Output = OutputTile<Plan, Epilogue, Parameters, Tile>;
  using Reductions = typename Output::template Reductions<kBandRows, kThreads>;
  using Shared = SplitKTile<Plan, Epilogue, Parameters, Accumulator>;
  struct Bands {
    static constexpr int kRows = kBandRows;
    static __device__ constexpr int tile_row(int row, int i) {
      return ThreadTile::row_of_band(row) + ThreadTile::row_step(i);
    }
  };
  using Staged = StagedOutput<Plan, Epilogue, Parameters, Bands, Tile>;

  // Shared memory holds the stages and, after the mainloop, the bands that the epilogue stages and reduces.
  static __device__ constexpr int epilogue_bytes() {
    if constexpr (Plan::kStagesRows) return Staged::kBytes;
    if constexpr ((Plan::kSplitK == 1 || Plan::kSplitsInTurn) && !Plan::kStagesRows) return Reductions::kBytes;
    if constexpr (Plan::kSplitK > 1 && !Plan::kSplitsInTurn) return Shared::kSharedBytes;
  }
  static_assert(Plan::kStageBytes == kStageElements * static_cast<int>(sizeof(Stored)));
  static_assert(Plan::kSharedBytes == maximum(kRingBytes + kSlots * (kStagedBytesA + kStagedBytesB), epilogue_bytes()));

 public:
  __device__ __forceinline__ explicit SimtGemm(const Parameters& parameters) : parameters_(parameters) {}

  __device__ __forceinline__ void run() {
    extern __shared__ __align__(128) unsigned char shared_memory[];
    Stored* const stages = reinterpret_cast<Stored*>(shared_memory);
    const uint32_t shared = ptx::shared_address(shared_memory);
    Tile tile;
    const auto store_tile = [&](const Accumulator(&accumulators)[kThreadM][kThreadN]) {
      if constexpr (Plan::kStagesRows) {
        store_staged(accumulators, shared_memory, tile);
      } else {
        store(accumulators, shared, tile);
      }
    };
    const auto compute = [&] {
      Accumulator accumulators[kThreadM][kThreadN] = {};
      multiply(accumulators, stages, tile, 0);
      store_tile(accumulators);
    };
    if constexpr (Tile::kIsIndependent) {
      typename Plan::Scheduler tiles(parameters_, static_cast<int>(parameters_.batch));
#pragma unroll 1
      while (tiles.next(tile)) {
        compute();
        __syncthreads();  // the stages have been read
      }
    } else if constexpr (Plan::kSplitK == 1) {
      if (Plan::Scheduler::find(parameters_, tile)) compute();
    } else if constexpr (Plan::kSplitsInTurn) {
      const typename Plan::Scheduler parts(parameters_.tiles, parameters_.batch, parameters_.workspace);
      const SplitKInTurn<Plan, Accumulator, kThreadM * kThreadN, kThreads> sums(parameters_.workspace);
#pragma unroll 1
      for (int ticket; parts.next(ticket, shared_memory);) {
        Accumulator accumulators[kThreadM][kThreadN] = {};
        tile = parts.part_of(ticket);
        multiply(accumulators, stages, tile, tile.part);
        tile = parts.part_of(ptx::unknown(ticket));  // to keep it would cost the mainloop registers
        if (sums.add(tile.number, tile.part, &accumulators[0][0])) store_tile(accumulators);
        __syncthreads();  // the stages have been read
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
    CopyA copy_a(matrix_of_batch<OperandA::kIsPointerArray, A>(parameters_.a, parameters_.batch_stride_a, tile.batch) +
                     folded_batch_offset(matrix_of(parameters_.matrix_a), tile.batch),
                 tile.lda(parameters_.lda), matrix_of(parameters_.matrix_a), begin_k, tile.m, tile.end_m(parameters_.m),
                 ptx::thread());
    CopyB copy_b(matrix_of_batch<OperandB::kIsPointerArray, B>(parameters_.b, parameters_.batch_stride_b, tile.batch) +
                     folded_batch_offset(matrix_of(parameters_.matrix_b), tile.batch),
                 tile.ldb(parameters_.ldb), matrix_of(parameters_.matrix_b), begin_k, tile.n, tile.end_n(parameters_.n),
                 ptx::thread());
    int k_left = k.extent;  // that is still to be copied; negative while the last stages are multiplied
    auto* const staged_a = reinterpret_cast<typename CopyA::StagedVector*>(stages + Plan::kStages * kStageElements);
    auto* const staged_b = reinterpret_cast<typename CopyB::StagedVector*>(staged_a + kSlots * CopyA::kStagedVectors);
    const auto stage_async = [&](int slot, int left) {
      copy_a.stage_async(staged_a + slot * CopyA::kStagedVectors, left);
      copy_b.stage_async(staged_b + slot * CopyB::kStagedVectors, left);
    };
    // Tile i is in stage i and in slot i, both modulo their number.
    int read_stage = 0, write_stage = 0;
    const auto load_passes = [&](int first, int last) {
      if constexpr (OperandA::kIsStaged) {
        copy_a.load_staged(staged_a + write_stage * CopyA::kStagedVectors, first, last);
      } else {
        copy_a.load(k_left, first, last);
      }
      if constexpr (OperandB::kIsStaged) {
        copy_b.load_staged(staged_b + write_stage * CopyB::kStagedVectors, first - CopyA::kRegisterPasses,
                           last - CopyA::kRegisterPasses);
      } else {
        copy_b.load(k_left, first - CopyA::kRegisterPasses, last - CopyA::kRegisterPasses);
      }
    };
    const auto load_phase = [&](int phase) { load_passes(first_pass(phase), first_pass(phase + 1)); };
    const auto store_phase = [&](Stored* to, int phase) {
      const int first = first_pass(phase), last = first_pass(phase + 1);
      copy_a.store(to, first, last);
      copy_b.store(to + kElementsA, first - CopyA::kRegisterPasses, last - CopyA::kRegisterPasses);
    };
    const auto begin_phase = [&](Stored* to, Stored* to_previous, int phase) {
      if (phase >= kLag) {
        store_phase(to, phase - kLag);
      } else if (kLag > 1) {
        store_phase(to_previous, kPhases + phase - kLag);
      }
      load_phase(phase);
    };
    // Starts the copies of a tile that do not wait, and those of the tile whose vectors are staged next.
    const auto start_copies = [&](Stored* to) {
      copy_a.copy_async(to, k_left);
      copy_b.copy_async(to + kElementsA, k_left);
      stage_async(write_stage == 0 ? kAhead : write_stage - 1, k_left - kAhead * Plan::kTileK);
    };
    const auto advance = [&] {
      copy_a.advance();
      copy_b.advance();
      k_left -= Plan::kTileK;
      write_stage = write_stage == kAhead ? 0 : write_stage + 1;
    };
    if constexpr (kIsStaged) {
#pragma unroll 1
      for (int slot = 0; slot < kAhead; ++slot) {
        stage_async(slot, k_left - slot * Plan::kTileK);
        ptx::cp_async_commit();
      }
    }
#pragma unroll 1
    for (int stage = 0; stage < kAhead; ++stage) {
      Stored* const to = stages + stage * kStageElements;
      if (k_left > 0) start_copies(to);
      if constexpr (kIsAsync) ptx::cp_async_commit();
      if constexpr (kIsStaged) ptx::cp_async_wait<kAhead>();
      if (k_left > 0) {
        // All phases at once, so that their latencies overlap: nothing is multiplied yet.
        load_passes(0, kRegisterPasses);
        copy_a.store(to, 0, CopyA::kRegisterPasses);
        copy_b.store(to + kElementsA, 0, CopyB::kRegisterPasses);
      }
      advance();
    }
    const int a_first = ThreadTile::row(ptx::thread()), b_first = kElementsA + ThreadTile::column(ptx::thread());
#pragma unroll 1
    while (k_left > -kAhead * Plan::kTileK) {
      if constexpr (kIsAsync) ptx::cp_async_wait<Plan::kStages - 2>();
      __syncthreads();  // this stage has arrived, and all threads have read the stage that is written next
      Stored* const to = stages + write_stage * kStageElements;
      const Stored* const stage = stages + read_stage * kStageElements;
      start_copies(to);
      if constexpr (kIsAsync) ptx::cp_async_commit();
      Stored* const to_previous = stages + (write_stage == 0 ? kAhead : write_stage - 1) * kStageElements;
      begin_phase(to, to_previous, 0);
      multiply_tile(accumulators, stage + a_first, stage + b_first,
                    [&](int phase) { begin_phase(to, to_previous, phase); });
      if constexpr (kLag == 1) store_phase(to, kPhases - 1);
      advance();
      read_stage = read_stage == kAhead ? 0 : read_stage + 1;
    }
    if constexpr (kIsAsync) ptx::cp_async_wait<0>();
  }

  /// The first pass of the copies through registers that a phase loads and stores.
  static __device__ constexpr int first_pass(int phase) { return phase * kRegisterPasses / kPhases; }

  /// Multiplies a tile, whose fragments of this thread begin at `from_a` and `from_b`. `next_phase`(i) begins phase i
  /// of the copies and ends phase i - kLag.
  template <class NextPhase>
  __device__ __forceinline__ void multiply_tile(Accumulator (&accumulators)[kThreadM][kThreadN], const Stored* from_a,
                                                const Stored* from_b, const NextPhase& next_phase) const {
    constexpr int kPhaseK = Plan::kTileK / kPhases;
    Stored a[2][kThreadM];
    Stored b[2][kThreadN];
    const auto load = [&](int k) {
      load_vectors<ThreadTile::kVectorM, ThreadTile::row_step>(a[k % 2], from_a + k * OperandA::kLineElements);
      load_vectors<ThreadTile::kVectorN, ThreadTile::column_step>(b[k % 2], from_b + k * OperandB::kLineElements);
    };
    load(0);
#pragma unroll
    for (int k = 0; k < Plan::kTileK; ++k) {
      if (k > 0 && k % kPhaseK == 0) next_phase(k / kPhaseK);
      if (k + 1 < Plan::kTileK) load(k + 1);
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
    const int row = ThreadTile::row(ptx::thread()), column = ThreadTile::column(ptx::thread());
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadN; j += ThreadTile::kVectorN) {
        Accumulator values[ThreadTile::kVectorN];
#pragma unroll
        for (int v = 0; v < ThreadTile::kVectorN; ++v) values[v] = accumulators[i][j + v];
        sums.put(row + ThreadTile::row_step(i), column + ThreadTile::column_step(j), values);
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
      for (int v = 0; v < ThreadTile::kVectorN; ++v) values[v] = ptx::in_another_register(row[j + v]);
      output.stage(ThreadTile::band_row(ptx::thread()), ThreadTile::column(ptx::thread()) + ThreadTile::column_step(j),
                   values);
    }
  }

  __device__ __forceinline__ void store(const Accumulator (&accumulators)[kThreadM][kThreadN], uint32_t shared,
                                        const Tile& tile) const {
    const int m = tile.m, n = tile.n;
    const Output output(parameters_, tile);
    const Reductions reductions = Output::template reductions<kBandRows, kThreads>(parameters_, shared);
    const typename Reductions::Block block{m, n, tile, 0};
    if constexpr (Epilogue::kReductions > 0) {
      __syncthreads();  // the stages have been read
      reductions.begin(parameters_.epilogue);
    }
    const int first_row = ThreadTile::row(ptx::thread()), first_column = ThreadTile::column(ptx::thread());
    const int band_row = ThreadTile::band_row(ptx::thread());
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
      const auto row_of = [&](int row) { return m + ThreadTile::row_of_band(row) + ThreadTile::row_step(i); };
#pragma unroll
      for (int j = 0; j < kThreadN; j += ThreadTile::kVectorN) {
        Accumulator values[ThreadTile::kVectorN];
#pragma unroll
        for (int v = 0; v < ThreadTile::kVectorN; ++v) {
          // Kernels of one tile had no conflicts of banks without the copies.
          values[v] = Plan::kSplitK > 1 ? ptx::in_another_register(accumulators[i][j + v]) : accumulators[i][j + v];
        }
        const int column = first_column + ThreadTile::column_step(j);
        output.store(m + first_row + ThreadTile::row_step(i), n + column, values, reductions, band_row, column);
      }
      reductions.end_band(parameters_.epilogue, block, row_of, ptx::Synchronize{});
    }
    reductions.end(parameters_.epilogue, block, 0, ptx::Synchronize{});
  }

  const Parameters& parameters_;
};

}  // namespace tilewright
