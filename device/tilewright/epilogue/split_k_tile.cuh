// Split-K of kernels whose threads all work on one tile: several CTAs compute the tile, each over a part of K. They
// store their accumulators to the workspace as a row-major tile and wait for each other; then each CTA sums an equal
// share of the tile and stores it to D. The order of the sum is that of K, so the result does not depend on which CTA
// was first.
#pragma once

#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/pipeline/grid_barrier.cuh"
#include "tilewright/ptx/another_register.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Plan: kTileM, kTileN, kSplitK, kWarpsM, kWarpsN, kCounterBytes (of the workspace), kSplitKRows (rows of the tile
/// that a share may overlap), and the members that OutputTile uses. Parameters: those of OutputTile.
template <class Plan, class Epilogue, class Parameters, class Accumulator>
class SplitKTile {
  static constexpr int kThreads = 32 * Plan::kWarpsM * Plan::kWarpsN;
  static constexpr int kVector = 16 / static_cast<int>(sizeof(Accumulator));
  using Sums = Vector<Accumulator, kVector>;
  static constexpr int kRowVectors = Plan::kTileN / kVector;
  static constexpr int kVectors = Plan::kTileM * kRowVectors;
  static constexpr int kPartialBytes = kVectors * 16;
  static constexpr int kShare = ceil_div(kVectors, Plan::kSplitK);  // vectors that a CTA sums, at most
  static constexpr int kInFlight = minimum(Plan::kSplitK, 8);       // partial sums of a vector loaded at once
  static_assert(Plan::kTileN % kVector == 0, "vectors cover a row");
  static_assert(Plan::kSplitKRows == minimum(Plan::kTileM, (kShare - 2 + kRowVectors) / kRowVectors + 1));
  using Output = OutputTile<Plan, Epilogue, Parameters>;
  using Reductions = typename Output::template Reductions<Plan::kSplitKRows, kThreads>;

 public:
  static constexpr int kSharedBytes = Reductions::kBytes;

  /// Must be constructed before this CTA first waits for the others. The CTAs of a group are consecutive; see
  /// scheduler/persistent.cuh. `shared` is the shared address of kSharedBytes, which are used from share() to its end.
  __device__ __forceinline__ SplitKTile(const Parameters& parameters, uint32_t shared)
      : parameters_(parameters),
        group_(static_cast<int>(blockIdx.x) / Plan::kSplitK),
        k_part_(static_cast<int>(blockIdx.x) % Plan::kSplitK),
        shared_(shared),
        all_(reinterpret_cast<uint32_t*>(parameters.workspace + group_ * GridBarrier::kCounterStep), k_part_,
             Plan::kSplitK) {}

  /// This CTA's part of K.
  __device__ __forceinline__ int k_part() const { return k_part_; }

  /// Stores adjacent accumulators of one row of the tile to the workspace. `column` must be a multiple of kCount.
  template <int kCount>
  __device__ __forceinline__ void put(int row, int column, const Accumulator (&accumulators)[kCount]) const {
    using Stored = Vector<Accumulator, minimum(kCount, kVector)>;
    constexpr int kElements = minimum(kCount, kVector);
    Accumulator* const to =
        reinterpret_cast<Accumulator*>(partials() + k_part_ * kPartialBytes) + row * Plan::kTileN + column;
#pragma unroll
    for (int first = 0; first < kCount; first += kElements) {
      Stored stored;
#pragma unroll
      for (int i = 0; i < kElements; ++i) stored.element[i] = ptx::in_another_register(accumulators[first + i]);
      *reinterpret_cast<Stored*>(to + first) = stored;
    }
  }

  /// Must be called by all threads when they have put the whole tile, whose first element is at (m, n) of D number
  /// `batch`. Waits for the group's other CTAs, sums this CTA's share and stores it. Double buffering is safe: a CTA
  /// puts tile i+1 only after all parts of tile i have arrived, and each CTA puts those only after it has read tile
  /// i-1.
  __device__ __forceinline__ void share(int m, int n, uint32_t batch) {
    __syncthreads();
    if (ptx::thread() == 0) {
      all_.arrive();
      all_.wait();
    }
    __syncthreads();
    const Output output(parameters_, TileOrigin{m, n, static_cast<int>(batch)});
    const Reductions reductions = Output::template reductions<Plan::kSplitKRows, kThreads>(parameters_, shared_);
    const typename Reductions::Block block{m, n, TileOrigin{m, n, static_cast<int>(batch)}, k_part_};
    const int first = kVectors / Plan::kSplitK * k_part_ + min(k_part_, kVectors % Plan::kSplitK);
    const int end = first + kVectors / Plan::kSplitK + (k_part_ < kVectors % Plan::kSplitK ? 1 : 0);
    const int first_row = first / kRowVectors;
    begin(reductions, block, first_row);
    const char* const partials = this->partials();
#pragma unroll 1
    for (int vector = first + ptx::thread(); vector < end; vector += kThreads) {
      const int row = vector / kRowVectors;
      const int column = vector % kRowVectors * kVector;
      Sums sums = {};
      if (m + row < parameters_.m && n + column < parameters_.n) add(sums, partials + vector * 16);
      output.store(m + row, n + column, sums.element, reductions, row - first_row, column);
    }
    finish(reductions, block, first_row);
    is_odd_round_ = !is_odd_round_;
  }

 private:
  /// Fills the band with the identity, because only this CTA's share of it is put there afterwards.
  __device__ __forceinline__ void begin(const Reductions& reductions, const typename Reductions::Block& block,
                                        int first_row) const {
    if constexpr (Epilogue::kReductions > 0) {
      reductions.begin(parameters_.epilogue);
      reductions.skip_rows(parameters_.epilogue, block, first_row);
#pragma unroll 1
      for (int i = ptx::thread(); i < Plan::kSplitKRows * Plan::kTileN; i += kThreads)
        reductions.template skip<1>(parameters_.epilogue, i / Plan::kTileN, i % Plan::kTileN);
      __syncthreads();
    }
  }

  __device__ __forceinline__ void finish(const Reductions& reductions, const typename Reductions::Block& block,
                                         int first_row) const {
    // The last rows of the band may lie behind the tile.
    const auto row_of = [&](int row) {
      return first_row + row < Plan::kTileM ? block.row + first_row + row : parameters_.m;
    };
    reductions.end_band(parameters_.epilogue, block, row_of, ptx::Synchronize{});
    reductions.end(parameters_.epilogue, block, 0, ptx::Synchronize{});
  }

  /// Adds the partial sums of all parts, in their order, of the vector at `from` in the first part.
  static __device__ __forceinline__ void add(Sums& sums, const char* from) {
#pragma unroll 1
    for (int part = 0; part < Plan::kSplitK; part += kInFlight) {
      Sums parts[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        parts[i] = Sums{};
        if (part + i < Plan::kSplitK) parts[i] = ptx::load_global<Sums>(from + (part + i) * kPartialBytes);
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
#pragma unroll
        for (int j = 0; j < kVector; ++j) sums.element[j] += parts[i].element[j];
      }
    }
  }

  /// The partial sums of the group's current tile, one row-major tile for each part of K.
  __device__ __forceinline__ char* partials() const {
    constexpr int64_t kRoundBytes = static_cast<int64_t>(Plan::kSplitK) * kPartialBytes;
    return parameters_.workspace + Plan::kCounterBytes + (2 * group_ + (is_odd_round_ ? 1 : 0)) * kRoundBytes;
  }

  const Parameters& parameters_;
  int group_, k_part_;
  uint32_t shared_;
  bool is_odd_round_ = false;
  GridBarrier all_;  // used by thread 0
};

}  // namespace tilewright
