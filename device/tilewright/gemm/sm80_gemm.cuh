// GEMM on the tensor cores of sm_80 and later: cp.async, or plain loads of operands that are aligned to less than 4
// bytes, copies operands into a ring of swizzled shared-memory stages, ldmatrix loads fragments, and mma.sync
// multiplies. One CTA computes one tile of D; with split-K a group of CTAs computes one tile after another, or CTAs add
// parts of K in turn.
#pragma once

#include "tilewright/copy/operand_copy.cuh"
#include "tilewright/epilogue/split_k_in_turn.cuh"
#include "tilewright/epilogue/split_k_tile.cuh"
#include "tilewright/epilogue/staged_output.cuh"
#include "tilewright/gemm/parameters.cuh"
#include "tilewright/mma/fragment_loader.cuh"
#include "tilewright/mma/warp_math.cuh"
#include "tilewright/operand/folded_matrix.cuh"
#include "tilewright/operand/im2col_matrix.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/ptx/another_register.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/scheduler/grid_tiles.cuh"
#include "tilewright/scheduler/independent_tiles.cuh"
#include "tilewright/scheduler/k_part.cuh"
#include "tilewright/scheduler/parts_in_turn.cuh"
#include "tilewright/scheduler/persistent.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Plan: OperandA, OperandB (also kIsPointerArray), Math, kTileM, kTileN, kTileK, kWarpsM, kWarpsN, kStages, kSplitK,
/// kSplitsInTurn, Scheduler (of scheduler/; PersistentTiles or PartsInTurn with split-K), kPromotesAccumulators,
/// kAccumulatesInHalf, AccumulatorTile, kStageBytes, kSharedBytes, MatrixC, MatrixD, and the members that StagedOutput,
/// the scheduler and, with split-K, SplitKTile or SplitKInTurn use. The values come from plan/sm80_gemm.
template <class Plan, class Epilogue>
class Sm80Gemm {
  using Math = typename Plan::Math;
  using Mma = typename Math::Mma;
  using OperandA = typename Plan::OperandA;
  using OperandB = typename Plan::OperandB;
  using Parameters = GemmParameters<typename Epilogue::Parameters, typename Plan::Groups, typename OperandA::Matrix,
                                    typename OperandB::Matrix, typename Plan::MatrixC, typename Plan::MatrixD>;
  using Tile = typename Plan::Scheduler::Tile;

  static constexpr int kThreads = 32 * Plan::kWarpsM * Plan::kWarpsN;
  static constexpr int kTilesM = Plan::kTileM / Plan::kWarpsM / Mma::kM;  // instructions along M in a warp's tile
  static constexpr int kTilesN = Plan::kTileN / Plan::kWarpsN / Mma::kN;
  static constexpr int kSteps = Plan::kTileK / Mma::kK;
  static_assert(OperandA::Fragments::kStepK == Math::kLoadK && OperandB::Fragments::kStepK == Math::kLoadK);

  using LoaderA = FragmentLoader<OperandA, Math::kLoadRegistersA, kTilesM>;
  using LoaderB = FragmentLoader<OperandB, Math::kLoadRegistersB, kTilesN>;
  /// A band is one row of instruction tiles of every warp.
  struct Bands {
    static constexpr int kRows = Plan::kWarpsM * Mma::kM;
    static __device__ constexpr int tile_row(int row, int i) {
      return row / Mma::kM * (Plan::kTileM / Plan::kWarpsM) + i * Mma::kM + row % Mma::kM;
    }
  };
  using Output = StagedOutput<Plan, Epilogue, Parameters, Bands, Tile>;
  using Accumulators = typename Mma::RegisterC[kTilesM][kTilesN][Mma::kRegistersC];
  using Shared = SplitKTile<Plan, Epilogue, Parameters, typename Mma::RegisterC>;

  /// The fragments that one step loads: [load][tile][register].
  struct Fragments {
    typename LoaderA::Fragment a[Math::kLoadsPerStep];
    typename LoaderB::Fragment b[Math::kLoadsPerStep];
  };

  // Shared memory holds the stages and, after the mainloop, the bands of the output.
  static __device__ constexpr int epilogue_bytes() {
    if constexpr (Plan::kSplitK == 1 || Plan::kSplitsInTurn) return Output::kBytes;
    if constexpr (Plan::kSplitK > 1 && !Plan::kSplitsInTurn) return Shared::kSharedBytes;
  }
  static_assert(Plan::kStageBytes == OperandA::kTileBytes + OperandB::kTileBytes);
  static_assert(Plan::kSharedBytes == maximum(Plan::kStages * Plan::kStageBytes, epilogue_bytes()));

 public:
  __device__ __forceinline__ explicit Sm80Gemm(const Parameters& parameters)
      : parameters_(parameters), thread_(static_cast<int>(threadIdx.x)), load_a_(thread_), load_b_(thread_) {}

  __device__ __forceinline__ void run() {
    extern __shared__ __align__(1024) unsigned char shared_memory[];
    shared_ = ptx::shared_address(shared_memory);
    Tile tile;
    const auto compute = [&] {
      Accumulators accumulators = {};
      multiply(accumulators, tile, 0);
      store(accumulators, shared_memory, tile);
    };
    if constexpr (Tile::kIsIndependent) {
      typename Plan::Scheduler tiles(parameters_, static_cast<int>(parameters_.batch));
#pragma unroll 1
      while (tiles.next(tile)) compute();  // store() ends with a barrier
    } else if constexpr (Plan::kSplitK == 1) {
      if (Plan::Scheduler::find(parameters_, tile)) compute();
    } else if constexpr (Plan::kSplitsInTurn) {
      const typename Plan::Scheduler parts(parameters_.tiles, parameters_.batch, parameters_.workspace);
      using Sum = typename Mma::RegisterC;
      const SplitKInTurn<Plan, Sum, kTilesM * kTilesN * Mma::kRegistersC, kThreads> sums(parameters_.workspace);
#pragma unroll 1
      for (int ticket; parts.next(ticket, shared_memory);) {
        Accumulators accumulators = {};
        tile = parts.part_of(ticket);
        multiply(accumulators, tile, tile.part);
        tile = parts.part_of(ptx::unknown(ticket));  // to keep it would cost the mainloop registers
        if (sums.add(tile.number, tile.part, &accumulators[0][0][0])) store(accumulators, shared_memory, tile);
        __syncthreads();  // the stages have been read
      }
    } else {
      typename Plan::Scheduler tiles(parameters_.tiles, static_cast<int>(parameters_.batch));
      Shared sums(parameters_, shared_);
#pragma unroll 1
      while (tiles.next(tile)) {
        Accumulators accumulators = {};
        multiply(accumulators, tile, sums.k_part());
        put(accumulators, sums);
        sums.share(tile.m, tile.n, tile.batch);
      }
    }
  }

 private:
  /// The ring of stages and the fragments in flight.
  struct Ring {
    OperandCopy<OperandA, kThreads> copy_a;
    OperandCopy<OperandB, kThreads> copy_b;
    int k_left;  // elements of K whose copies have not begun
    uint32_t write_stage, read_stage;
    Fragments fragments[2];
  };

  __device__ __forceinline__ void multiply(Accumulators& accumulators, const Tile& tile, int part) {
    using A = const typename OperandA::Element;
    using B = const typename OperandB::Element;
    const KPart k = k_part<Plan::kTileK, Plan::kSplitK>(tile.extent_k(parameters_.k), part);
    const int begin_k = tile.begin_k() + k.begin;
    const int64_t lda = tile.lda(parameters_.lda), ldb = tile.ldb(parameters_.ldb);
    Ring ring{{matrix_of_batch<OperandA::kIsPointerArray, A>(parameters_.a, parameters_.batch_stride_a, tile.batch) +
                   folded_batch_offset(matrix_of(parameters_.matrix_a), tile.batch),
               lda, matrix_of(parameters_.matrix_a), begin_k, tile.m, tile.end_m(parameters_.m), thread_},
              {matrix_of_batch<OperandB::kIsPointerArray, B>(parameters_.b, parameters_.batch_stride_b, tile.batch) +
                   folded_batch_offset(matrix_of(parameters_.matrix_b), tile.batch),
               ldb, matrix_of(parameters_.matrix_b), begin_k, tile.n, tile.end_n(parameters_.n), thread_},
              k.extent,
              shared_,
              shared_};
#pragma unroll 1
    for (int stage = 0; stage < Plan::kStages - 1; ++stage) {
      // One tile of zeros is copied behind the end of K, because the last step loads fragments of the tile that
      // follows.
      if (ring.k_left > -Plan::kTileK) {
        start_copy<0, 1>(ring);
        finish_copy(ring);
      }
      advance_copy(ring);
    }
    wait_for_stage();
    load<0>(ring.fragments[0], ring.read_stage);
    for (int k_tile = 0; k_tile < k.tiles; ++k_tile) {
      if constexpr (Plan::kPromotesAccumulators) {
        Accumulators partial = {};
        multiply_steps<0>(partial, ring);
        add(accumulators, partial);
      } else {
        multiply_steps<0>(accumulators, ring);
      }
    }
    ptx::cp_async_wait<0>();
  }

  /// Issues one share of the copy of the next tile along K. Past the end of K it copies zeros.
  template <int kShare, int kShares>
  __device__ __forceinline__ void start_copy(Ring& ring) const {
    ring.copy_a.template start<kShare, kShares>(ring.write_stage, ring.k_left);
    ring.copy_b.template start<kShare, kShares>(ring.write_stage + OperandA::kTileBytes, ring.k_left);
  }

  /// Finishes the copy that start_copy() has begun; see OperandCopy::finish().
  __device__ __forceinline__ void finish_copy(Ring& ring) const {
    ring.copy_a.finish(ring.write_stage, ring.k_left);
    ring.copy_b.finish(ring.write_stage + OperandA::kTileBytes, ring.k_left);
  }

  /// Each tile has a commit group, also if nothing was copied, so that the number of pending groups stays the same.
  __device__ __forceinline__ void advance_copy(Ring& ring) const {
    ptx::cp_async_commit();
    ring.copy_a.advance();
    ring.copy_b.advance();
    ring.k_left -= Plan::kTileK;
    ring.write_stage = next_stage(ring.write_stage);
  }

  /// Executes the steps from kStep on of the tile in ring.read_stage. A step issues its share of a copy, loads the
  /// fragments of the next step, which may be in the next tile, and multiplies the fragments that the previous step
  /// loaded.
  template <int kStep>
  __device__ __forceinline__ void multiply_steps(Accumulators& accumulators, Ring& ring) const {
    constexpr int kNext = (kStep + 1) % kSteps;
    start_copy<kStep, kSteps>(ring);
    if constexpr (kNext == 0) {
      finish_copy(ring);
      advance_copy(ring);
      // The next tile has arrived, and every warp has its fragments of this one: its stage may be overwritten.
      wait_for_stage();
      ring.read_stage = next_stage(ring.read_stage);
    }
    load<kNext>(ring.fragments[(kStep + 1) % 2], ring.read_stage);
    multiply_step(accumulators, ring.fragments[kStep % 2]);
    if constexpr (kNext != 0) {
      multiply_steps<kStep + 1>(accumulators, ring);
    } else if constexpr (kSteps % 2 == 1) {
      ring.fragments[0] = ring.fragments[1];
    }
  }

  __device__ __forceinline__ uint32_t next_stage(uint32_t stage) const {
    const uint32_t next = stage + Plan::kStageBytes;
    return next == shared_ + Plan::kStages * Plan::kStageBytes ? shared_ : next;
  }

  static __device__ __forceinline__ void wait_for_stage() {
    ptx::cp_async_wait<Plan::kStages - 2>();
    __syncthreads();
  }

  template <int kStep>
  __device__ __forceinline__ void load(Fragments& fragments, uint32_t stage) const {
    constexpr int kFirst = kStep * Math::kLoadsPerStep;
    load_a_.template load<kFirst>(fragments.a[0], stage);
    load_b_.template load<kFirst>(fragments.b[0], stage + OperandA::kTileBytes);
    if constexpr (Math::kLoadsPerStep == 2) {
      load_a_.template load<kFirst + 1>(fragments.a[1], stage);
      load_b_.template load<kFirst + 1>(fragments.b[1], stage + OperandA::kTileBytes);
    }
  }

  /// Operands are converted just before their first use, so that the tensor cores need not wait for all of them.
  static __device__ __forceinline__ void multiply_step(Accumulators& accumulators, const Fragments& fragments) {
    typename Math::A a[kTilesM];
    typename Math::B b[kTilesN];
    multiply_term<0>(accumulators, fragments, a, b);
  }

  template <int kTerm>
  static __device__ __forceinline__ void multiply_term(Accumulators& accumulators, const Fragments& fragments,
                                                       typename Math::A (&a)[kTilesM], typename Math::B (&b)[kTilesN]) {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      if (kTerm == 0) Math::prepare_a(a[i], TileOf<typename LoaderA::Fragment>{fragments.a, i});
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        // The order goes back and forth along N, so that each instruction shares an operand with the previous one.
        const int column = i % 2 == 0 ? j : kTilesN - 1 - j;
        if (kTerm == 0 && i == 0) Math::prepare_b(b[column], TileOf<typename LoaderB::Fragment>{fragments.b, column});
        Math::template fma<kTerm>(accumulators[i][column], a[i], b[column]);
      }
    }
    if constexpr (kTerm + 1 < Math::kTerms) multiply_term<kTerm + 1>(accumulators, fragments, a, b);
  }

  /// The registers of one instruction tile, indexed by [load].
  template <class Fragment>
  struct TileOf {
    const Fragment* loads;
    int tile;
    __device__ __forceinline__ decltype(auto) operator[](int load) const { return (loads[load][tile]); }
  };

  /// Tensor cores round sums toward zero. Adding the sum of each k tile by an ordinary f32 addition keeps these errors
  /// from accumulating.
  static __device__ __forceinline__ void add(Accumulators& sum, const Accumulators& partial) {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
        for (int r = 0; r < Mma::kRegistersC; ++r) sum[i][j][r] += partial[i][j][r];
      }
    }
  }

  /// Puts this thread's accumulators to where the CTAs of the tile sum them.
  __device__ __forceinline__ void put(const Accumulators& accumulators, const Shared& sums) const {
    using Tile = typename Plan::AccumulatorTile;
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
      for (int half = 0; half < Mma::kM / 8; ++half) {
        const int row = Bands::tile_row(Tile::row(thread_) + half * Tile::kOtherRow, i);
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) {
          const typename Mma::RegisterC pair[2] = {accumulators[i][j][2 * half], accumulators[i][j][2 * half + 1]};
          sums.put(row, Tile::column(thread_) + j * Mma::kN, pair);
        }
      }
    }
  }

  __device__ __forceinline__ void store(const Accumulators& accumulators, void* shared, const Tile& tile) const {
    const Output output(parameters_, tile, shared);
    __syncthreads();  // the last fragments have been read: the stages are free
    output.begin();
    // The loop is not unrolled, so that the epilogue's code exists once; accumulators are still indexed by constants.
#pragma unroll 1
    for (int band = 0; band < kTilesM; ++band) {
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
        if (i == band) stage(output, accumulators[i]);
      }
      output.store(band);
    }
    output.end();
  }

  __device__ __forceinline__ void stage(const Output& output,
                                        const typename Mma::RegisterC (&tiles)[kTilesN][Mma::kRegistersC]) const {
    using Tile = typename Plan::AccumulatorTile;
#pragma unroll
    for (int half = 0; half < Mma::kM / 8; ++half) {
      const int row = Tile::row(thread_) + half * Tile::kOtherRow;
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        const int column = Tile::column(thread_) + j * Mma::kN;
        if constexpr (Plan::kAccumulatesInHalf) {
          const uint32_t pair = tiles[j][half];
          output.stage(row, column, {half_t{static_cast<uint16_t>(pair)}, half_t{static_cast<uint16_t>(pair >> 16)}});
        } else {
          output.stage(row, column, {tiles[j][2 * half], tiles[j][2 * half + 1]});
        }
      }
    }
  }

  const Parameters& parameters_;
  int thread_;
  LoaderA load_a_;
  LoaderB load_b_;
  uint32_t shared_ = 0;
};

}  // namespace tilewright
