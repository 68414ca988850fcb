// GEMM with few rows or few columns of D on CUDA cores. It is bound by the bandwidth of global memory, from which each
// thread loads the large operand straight to registers.
#pragma once

#include "tilewright/copy/line_vectors.cuh"
#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/gemm/parameters.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/numeric/functions.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/ptx/cluster.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/shuffle.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Sums kCount values of each lane over the lanes whose numbers differ in the bits from kFirst to below 32. Afterwards
/// values[0] of a lane, and more if kCount exceeds the number of those lanes, are sums: value j is number index + j.
/// Returns the index, or -1 if another lane has the same sums. Each step halves the values that a lane still has and
/// exchanges the other half, so that kCount values take about kCount shuffles instead of five times as many.
template <int kFirst, class Value, int kCount>
__device__ __forceinline__ int sum_over_lanes(Value (&values)[kCount], int lane) {
  static_assert((kCount & (kCount - 1)) == 0, "a power of two");
  int index = 0;
  bool is_first = true;
  int count = kCount;
#pragma unroll
  for (int mask = kFirst; mask < 32; mask *= 2) {
    if (count > 1) {
      count /= 2;
      const bool keeps_upper = (lane & mask) != 0;
      if (keeps_upper) index += count;
#pragma unroll
      for (int i = 0; i < kCount / 2; ++i) {
        if (i >= count) break;
        const Value sent = keeps_upper ? values[i] : values[i + count];
        const Value kept = keeps_upper ? values[i + count] : values[i];
        values[i] = kept + ptx::shuffle_xor(sent, mask);
      }
    } else {
      values[0] = values[0] + ptx::shuffle_xor(values[0], mask);
      is_first = is_first && (lane & mask) == 0;
    }
  }
  return is_first ? index : -1;
}

/// Plan: Lines and Few, the large and the small operand (copy/line_vectors.cuh; also kIsPointerArray); kRowsAreFew,
/// whether A is the small one; Accumulator; kFew, the rows, or columns, of D that are computed; kThreadLines lines of
/// the large operand for each thread and kTileLines for a CTA; kLaneGroups, the lanes of a warp that have different
/// lines; kWarpsLines, kWarpsK, kClusterK, the warps along the lines and along K, and the CTAs along K; kChunk adjacent
/// elements of K for a thread at a time, and kAhead such chunks that are loaded before they are multiplied; and the
/// members that OutputTile uses. The values come from plan/skinny_gemm.
template <class Plan, class Epilogue>
class SkinnyGemm {
  using Parameters = GemmParameters<typename Epilogue::Parameters>;
  using Accumulator = typename Plan::Accumulator;
  using Output = OutputTile<Plan, Epilogue, Parameters>;
  static constexpr int kWarps = Plan::kWarpsLines * Plan::kWarpsK;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kLaneKs = 32 / Plan::kLaneGroups;  // lanes of a warp that have different elements of K
  static constexpr int kParts = kLaneKs * Plan::kWarpsK * Plan::kClusterK;
  static constexpr int kSums = Plan::kFew * Plan::kThreadLines;
  static constexpr int kTileElements = Plan::kFew * Plan::kTileLines;
  static constexpr int kPerElement = Epilogue::kColumnsPerElement;
  static_assert(Plan::kTileLines == Plan::kThreadLines * Plan::kLaneGroups * Plan::kWarpsLines);
  static_assert(Plan::kSharedBytes == Plan::kWarpsK * kTileElements * static_cast<int>(sizeof(Accumulator)));

 public:
  __device__ __forceinline__ explicit SkinnyGemm(const Parameters& parameters) : parameters_(parameters) {}

  __device__ __forceinline__ void run() {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const uint32_t batch = blockIdx.z * gridDim.y + blockIdx.y;
    if (batch >= parameters_.batch) return;  // all CTAs of a cluster have the same matrix
    const int first_line = static_cast<int>(blockIdx.x) / Plan::kClusterK * Plan::kTileLines;
    const int rank = static_cast<int>(blockIdx.x) % Plan::kClusterK;
    const int warp = ptx::thread() / 32, lane = ptx::thread() % 32;
    const int warp_line = warp % Plan::kWarpsLines, warp_k = warp / Plan::kWarpsLines;
    const int group = lane % Plan::kLaneGroups;
    const int line = (warp_line * Plan::kLaneGroups + group) * Plan::kThreadLines;  // this thread's first
    const int part = (rank * Plan::kWarpsK + warp_k) * kLaneKs + lane / Plan::kLaneGroups;

    Accumulator sums[kSums] = {};
    multiply(sums, batch, first_line + line, part);
    const int index = sum_over_lanes<Plan::kLaneGroups>(sums, lane);
    const uint32_t shared = ptx::shared_address(shared_memory);
#pragma unroll
    for (int i = 0; i < maximum(kSums / kLaneKs, 1); ++i) {
      if (index < 0) break;
      const int few = (index + i) / Plan::kThreadLines, of_thread = (index + i) % Plan::kThreadLines;
      ptx::store_shared(place(shared, warp_k, few, line + of_thread), sums[i]);
    }
    if constexpr (Plan::kClusterK > 1) {
      ptx::cluster_sync();
    } else {
      __syncthreads();
    }
    store(shared, static_cast<int>(batch), first_line, rank);
    if constexpr (Plan::kClusterK > 1) ptx::cluster_sync();  // others have read this CTA's sums
  }

 private:
  static __device__ __forceinline__ uint32_t place(uint32_t shared, int warp_k, int few, int line) {
    const int at = (warp_k * Plan::kFew + few) * Plan::kTileLines + line;
    return shared + static_cast<uint32_t>(at) * static_cast<uint32_t>(sizeof(Accumulator));
  }

  /// Adds the products of this thread's part of K. `line` is its first line of the large operand.
  __device__ __forceinline__ void multiply(Accumulator (&sums)[kSums], uint32_t batch, int line, int part) const {
    using Lines = LineVectors<typename Plan::Lines, Plan::kThreadLines, Plan::kChunk>;
    using Few = LineVectors<typename Plan::Few, Plan::kFew, Plan::kChunk>;
    constexpr bool kRows = Plan::kRowsAreFew;
    const Few few(matrix<typename Plan::Few>(kRows, batch), kRows ? parameters_.lda : parameters_.ldb, 0,
                  kRows ? parameters_.m : parameters_.n);
    const Lines lines(matrix<typename Plan::Lines>(!kRows, batch), kRows ? parameters_.ldb : parameters_.lda, line,
                      kRows ? parameters_.n : parameters_.m);
    if (lines.is_whole() && few.is_whole()) {
      multiply<true>(sums, lines, few, part);
    } else {
      multiply<false>(sums, lines, few, part);
    }
  }

  template <bool kIsWhole, class Lines, class Few>
  __device__ __forceinline__ void multiply(Accumulator (&sums)[kSums], const Lines& lines, const Few& few,
                                           int part) const {
    constexpr int kStep = kParts * Plan::kChunk;
    int k = part * Plan::kChunk;
    constexpr int kLast = (Plan::kAhead - 1) * kStep + Plan::kChunk;  // the end of the chunks that are loaded together
#pragma unroll 1
    for (; k <= parameters_.k - kLast; k += Plan::kAhead * kStep) {
      typename Lines::Fragment loaded[Plan::kAhead];
#pragma unroll
      for (int i = 0; i < Plan::kAhead; ++i) lines.template load<kIsWhole>(loaded[i], k + i * kStep);
#pragma unroll
      for (int i = 0; i < Plan::kAhead; ++i) {
        typename Few::Fragment with;
        few.template load<kIsWhole>(with, k + i * kStep);
        add(sums, loaded[i], with);
      }
    }
#pragma unroll 1
    for (; k < parameters_.k; k += kStep) {
      typename Lines::Fragment loaded;
      typename Few::Fragment with;
      if (k + Plan::kChunk <= parameters_.k) {
        lines.template load<kIsWhole>(loaded, k);
        few.template load<kIsWhole>(with, k);
      } else {
        lines.load_until(loaded, k, parameters_.k);
        few.load_until(with, k, parameters_.k);
      }
      add(sums, loaded, with);
    }
  }

  template <class Operand>
  __device__ __forceinline__ const typename Operand::Element* matrix(bool is_a, uint32_t batch) const {
    return matrix_of_batch<Operand::kIsPointerArray, const typename Operand::Element>(
        is_a ? parameters_.a : parameters_.b, is_a ? parameters_.batch_stride_a : parameters_.batch_stride_b, batch);
  }

  template <class LinesFragment, class FewFragment>
  static __device__ __forceinline__ void add(Accumulator (&sums)[kSums], const LinesFragment& lines,
                                             const FewFragment& few) {
#pragma unroll
    for (int k = 0; k < Plan::kChunk; ++k) {
      Accumulator of_lines[Plan::kThreadLines];
#pragma unroll
      for (int j = 0; j < Plan::kThreadLines; ++j) of_lines[j] = convert<Accumulator>(lines.element[j][k]);
#pragma unroll
      for (int i = 0; i < Plan::kFew; ++i) {
        const Accumulator of_few = convert<Accumulator>(few.element[i][k]);
#pragma unroll
        for (int j = 0; j < Plan::kThreadLines; ++j) {
          Accumulator& sum = sums[i * Plan::kThreadLines + j];
          sum = numeric::fma(of_few, of_lines[j], sum);
        }
      }
    }
  }

  /// The sum over the warps and CTAs along K of an element of the tile.
  __device__ __forceinline__ Accumulator sum(uint32_t shared, int few, int line) const {
    Accumulator all{};
#pragma unroll
    for (int rank = 0; rank < Plan::kClusterK; ++rank) {
#pragma unroll
      for (int warp = 0; warp < Plan::kWarpsK; ++warp) {
        const uint32_t at = place(shared, warp, few, line);
        if constexpr (Plan::kClusterK > 1) {
          all = all + ptx::load_cluster_shared<Accumulator>(at, rank);
        } else {
          all = all + ptx::load_shared<Accumulator>(at);
        }
      }
    }
    return all;
  }

  /// Applies the epilogue to this CTA's share of the tile's elements of D. Adjacent threads store adjacent columns.
  __device__ __forceinline__ void store(uint32_t shared, int batch, int first_line, int rank) const {
    const TileOrigin tile{Plan::kRowsAreFew ? 0 : first_line, Plan::kRowsAreFew ? first_line : 0, batch};
    const Output output(parameters_, tile);
    const auto reductions = Output::template reductions<1, kThreads>(parameters_, shared);
    constexpr int kColumns = Plan::kRowsAreFew ? Plan::kTileLines : Plan::kFew;
    constexpr int kStores = kTileElements / kPerElement;
    const int thread = rank * kThreads + ptx::thread();
#pragma unroll 1
    for (int i = thread; i < kStores; i += kThreads * Plan::kClusterK) {
      const int row = i * kPerElement / kColumns, column = i * kPerElement % kColumns;
      if (tile.n + column >= output.end_n()) continue;
      Accumulator values[kPerElement];
#pragma unroll
      for (int v = 0; v < kPerElement; ++v) {
        values[v] = Plan::kRowsAreFew ? sum(shared, row, column + v) : sum(shared, column + v, row);
      }
      output.store(tile.m + row, tile.n + column, values, reductions, 0, column);
    }
  }

  const Parameters& parameters_;
};

}  // namespace tilewright
