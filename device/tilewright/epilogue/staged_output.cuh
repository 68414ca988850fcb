// Stores accumulators of mma.sync to D through shared memory, one band of rows at a time. A band is read back row by
// row, or column by column if D is column-major, so that the epilogue accesses C and D in whole vectors, and adjacent
// threads access adjacent addresses.
#pragma once

#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A band is one row of instruction tiles of every warp: kWarpsM * kInstructionM rows of the CTA's tile. TileOfD is the
/// scheduler's Tile.
template <class Plan, class Epilogue, class Parameters, class TileOfD, int kInstructionM, int kInstructionN>
class StagedOutput {
  using Compute = typename Epilogue::Compute;
  static constexpr int kThreads = 32 * Plan::kWarpsM * Plan::kWarpsN;
  static constexpr int kWarpTileM = Plan::kTileM / Plan::kWarpsM;
  static constexpr int kBandRows = Plan::kWarpsM * kInstructionM;
  static constexpr int kLine = Plan::kBandLine;  // elements from one row to the next, with padding
  static constexpr bool kByRows = Plan::LayoutD::kRowsAreContiguous;
  static constexpr int kVector = kByRows ? minimum(Plan::kAlignmentD * Epilogue::kColumnsPerElement, 8) : 2;
  static constexpr int kVectorsPerRow = Plan::kTileN / kVector;
  static_assert(Plan::kTileN % kVector == 0, "vectors cover a row");
  static_assert(Plan::kBandBytes == kBandRows * kLine * static_cast<int>(sizeof(Compute)));
  using Tile = OutputTile<Plan, Epilogue, Parameters, TileOfD>;
  using Reductions = typename Tile::template Reductions<kBandRows, kThreads>;

 public:
  static constexpr int kBytes = Plan::kBandBytes + Reductions::kBytes;  // shared memory

  __device__ __forceinline__ StagedOutput(const Parameters& parameters, const TileOfD& tile, void* shared)
      : parameters_(parameters),
        output_(parameters, tile),
        reductions_(Tile::template reductions<kBandRows, kThreads>(
            parameters, ptx::shared_address(static_cast<unsigned char*>(shared)) + Plan::kBandBytes)),
        band_(static_cast<Compute*>(shared)),
        block_{tile.m, tile.n, tile.batch, 0},
        thread_(static_cast<int>(threadIdx.x)) {}

  /// Must be called before the first band, when `shared` is free.
  __device__ __forceinline__ void begin() const { reductions_.begin(parameters_.epilogue); }

  /// Stages two adjacent accumulators of this thread in the band: those of its first row or, if `half` is 1, of its
  /// second row. `j` is the number of the instruction along N in the warp's tile.
  template <class Accumulator>
  __device__ __forceinline__ void stage(int half, int j, Accumulator low, Accumulator high) const {
    using Accumulators = typename Plan::AccumulatorTile;
    const int row = Accumulators::row(thread_) + half * Accumulators::kOtherRow;
    const int column = Accumulators::column(thread_) + j * kInstructionN;
    *reinterpret_cast<Vector<Compute, 2>*>(band_ + row * kLine + column) = {convert<Compute>(low),
                                                                            convert<Compute>(high)};
  }

  /// Stores the tile's i-th band, which all threads have staged. Begins and ends with a barrier.
  __device__ __forceinline__ void store(int i) const {
    __syncthreads();
#pragma unroll 1
    for (int index = thread_; index < kBandRows * kVectorsPerRow; index += kThreads) {
      const int row = kByRows ? index / kVectorsPerRow : index % kBandRows;
      const int column = (kByRows ? index % kVectorsPerRow : index / kBandRows) * kVector;
      Compute values[kVector];
#pragma unroll
      for (int v = 0; v < kVector; ++v) values[v] = band_[row * kLine + column + v];
      output_.store(row_of(row, i), block_.column + column, values, reductions_, row, column);
    }
    if constexpr (Epilogue::kReductions > 0) {
      reductions_.end_band(
          parameters_.epilogue, block_, [&](int row) { return row_of(row, i); }, ptx::Synchronize{});
    } else {
      __syncthreads();
    }
  }

  /// The row of the tile at row `band_row` of the i-th band.
  static __device__ __forceinline__ int tile_row(int band_row, int i) {
    return band_row / kInstructionM * kWarpTileM + i * kInstructionM + band_row % kInstructionM;
  }

  /// Must be called after the last band.
  __device__ __forceinline__ void end() const { reductions_.end(parameters_.epilogue, block_, 0, ptx::Synchronize{}); }

 private:
  /// The row of D at row `row` of the i-th band.
  __device__ __forceinline__ int row_of(int row, int i) const { return block_.row + tile_row(row, i); }

  const Parameters& parameters_;
  Tile output_;
  Reductions reductions_;
  Compute* band_;
  typename Reductions::Block block_;
  int thread_;
};

}  // namespace tilewright
