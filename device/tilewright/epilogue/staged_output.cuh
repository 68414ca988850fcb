// Accumulators of mma.sync to D through shared memory: a band of rows at a time is laid out row by row, so that the
// epilogue reads C and writes D in whole vectors, neighbouring threads at neighbouring addresses.
#pragma once

#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A band is one row of instruction tiles of every warp: kWarpsM * kInstructionM rows of the CTA's tile.
template <class Plan, class Epilogue, int kInstructionM, int kInstructionN>
class StagedOutput {
  using Compute = typename Epilogue::Compute;
  using Parameters = GemmParameters<typename Epilogue::Parameters>;
  static constexpr int kThreads = 32 * Plan::kWarpsM * Plan::kWarpsN;
  static constexpr int kWarpTileM = Plan::kTileM / Plan::kWarpsM;
  static constexpr int kWarpTileN = Plan::kTileN / Plan::kWarpsN;
  static constexpr int kBandRows = Plan::kWarpsM * kInstructionM;
  static constexpr int kLine = Plan::kBandLine;  // elements from row to row; padded, see plan/sm80_gemm
  static constexpr int kVector = minimum(Plan::kAlignmentD, 8);
  static constexpr int kVectorsPerRow = Plan::kTileN / kVector;
  static_assert(Plan::kTileN % kVector == 0, "vectors cover a row");

 public:
  __device__ __forceinline__ StagedOutput(const Parameters& parameters, uint32_t batch, void* shared, int m, int n)
      : output_(parameters, batch),
        band_(static_cast<Compute*>(shared)),
        m_(m),
        n_(n),
        thread_(static_cast<int>(threadIdx.x)) {}

  /// Keeps two neighbouring columns of a lane: row lane/4 + 8 * half of the instruction tile, column 2 * (lane % 4) of
  /// instruction tile `j` of this warp.
  template <class Accumulator>
  __device__ __forceinline__ void stage(int half, int j, Accumulator low, Accumulator high) const {
    const int lane = thread_ % 32;
    const int warp = thread_ / 32;
    const int row = warp % Plan::kWarpsM * kInstructionM + half * 8 + lane / 4;
    const int column = warp / Plan::kWarpsM * kWarpTileN + j * kInstructionN + lane % 4 * 2;
    *reinterpret_cast<Vector<Compute, 2>*>(band_ + row * kLine + column) = {convert<Compute>(low),
                                                                            convert<Compute>(high)};
  }

  /// Stores the band that all threads staged, the i-th of the tile. Begins and ends with a barrier.
  __device__ __forceinline__ void store(int i) const {
    __syncthreads();
#pragma unroll 1
    for (int index = thread_; index < kBandRows * kVectorsPerRow; index += kThreads) {
      const int row = index / kVectorsPerRow;
      const int column = index % kVectorsPerRow * kVector;
      Compute values[kVector];
#pragma unroll
      for (int v = 0; v < kVector; ++v) values[v] = band_[row * kLine + column + v];
      const int tile_row = row / kInstructionM * kWarpTileM + i * kInstructionM + row % kInstructionM;
      output_.store(m_ + tile_row, n_ + column, values);
    }
    __syncthreads();
  }

 private:
  OutputTile<Plan, Epilogue> output_;
  Compute* band_;
  int m_, n_;
  int thread_;
};

}  // namespace tilewright
