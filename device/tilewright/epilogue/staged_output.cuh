// Stores accumulators to D through shared memory, one band of rows at a time. A band is read back row by
// row, or column by column if D is column-major, so that the epilogue accesses C and D in whole vectors, and adjacent
// threads access adjacent addresses. If D's rows allow only short vectors, the results return to the band first, and
// its rows are stored with vectors that are aligned in D.
#pragma once

#include "tilewright/epilogue/line_store.cuh"
#include "tilewright/epilogue/output_tile.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/matrix_layout.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Bands: kRows, the rows of a band, and tile_row(row, i), the row of the CTA's tile at row `row` of the i-th band.
/// Plan: kBandLine (elements from one row of a band to the next), kBandBytes, kRealignsRows (whether the rows of D are
/// stored with vectors that are longer than their alignment), kWarpsM, kWarpsN, and the members that OutputTile uses.
/// Epilogue: the members that OutputTile uses, and kHasTensors (whether apply() reads or writes tensors other than C
/// and D, reductions included). TileOfD is the scheduler's Tile.
template <class Plan, class Epilogue, class Parameters, class Bands, class TileOfD>
class StagedOutput {
  using Compute = typename Epilogue::Compute;
  using D = typename Plan::ElementD;
  static constexpr int kThreads = 32 * Plan::kWarpsM * Plan::kWarpsN;
  static constexpr int kBandRows = Bands::kRows;
  static constexpr int kLine = Plan::kBandLine;
  static constexpr int kPerElement = Epilogue::kColumnsPerElement;
  static constexpr int kDBytes = static_cast<int>(sizeof(D));
  static constexpr bool kRealigns = Plan::kRealignsRows;
  static_assert(!kRealigns || is_same<typename Plan::LayoutD, RowMajor>);

  /// Columns of A*B that a thread computes together.
  static __device__ constexpr int vector() {
    if (!Plan::LayoutD::kRowsAreContiguous) return 2;
    if (!kRealigns) return minimum(Plan::kAlignmentD * kPerElement, 8);
    int count = 16 / kDBytes * kPerElement;
    while (Plan::kTileN % count != 0) count /= 2;
    return count;
  }
  static constexpr bool kByRows = Plan::LayoutD::kRowsAreContiguous;
  static constexpr int kVector = vector();
  static constexpr int kVectorsPerRow = Plan::kTileN / kVector;
  static_assert(Plan::kTileN % kVector == 0, "vectors cover a row");
  static constexpr int kVectors = kBandRows * kVectorsPerRow;
  static constexpr int kPasses = ceil_div(kVectors, kThreads);  // vectors of a band that a thread stores, at most
  // Whether all vectors of a thread begin in the same column. They are kRowStep rows apart.
  static constexpr bool kColumnIsFixed = kByRows && kThreads % kVectorsPerRow == 0;
  static constexpr int kRowStep = kThreads / kVectorsPerRow;
  // Whether the epilogue only computes, and its results are stored from registers, row by row, so that a thread may
  // compute several vectors before it stores the first of them. In f64, the first multiplication after a load waits for
  // the mma.sync of other warps, which use the same unit: one wait for each vector of two elements took a fifth of the
  // time of a kernel with K = 272 (H200, 2026-11-27).
  static constexpr bool kOnlyComputes = kByRows && !kRealigns && !Epilogue::kReadsSource && !Epilogue::kHasTensors;
  /// Vectors of a thread whose latencies overlap.
  static __device__ constexpr int together() {
    constexpr int kBytesInRegisters = 64;  // with 128, f64 tiles of 64x64 took 174 registers instead of 168
    constexpr int kMost = 4;               // each vector has an address, too
    int count = 2;
    if (kOnlyComputes) count = minimum(kBytesInRegisters / (kVector * static_cast<int>(sizeof(Compute))), kMost);
    while (kPasses % count != 0) count /= 2;
    return count;
  }
  static constexpr int kTogether = together();
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
        block_{tile.m, tile.n, tile, 0},
        thread_(static_cast<int>(threadIdx.x)) {}

  /// Must be called before the first band, when `shared` is free.
  __device__ __forceinline__ void begin() const { reductions_.begin(parameters_.epilogue); }

  /// Stages the accumulators of kCount adjacent columns in the band, from (row, column) on.
  template <int kCount, class Accumulator>
  __device__ __forceinline__ void stage(int row, int column, const Accumulator (&accumulators)[kCount]) const {
    constexpr int kTogether = minimum(kCount, 16 / static_cast<int>(sizeof(Compute)));
#pragma unroll
    for (int first = 0; first < kCount; first += kTogether) {
      Vector<Compute, kTogether> values;
#pragma unroll
      for (int i = 0; i < kTogether; ++i) values.element[i] = convert<Compute>(accumulators[first + i]);
      *reinterpret_cast<Vector<Compute, kTogether>*>(band_ + row * kLine + column + first) = values;
    }
  }

  /// Stores the tile's i-th band, which all threads have staged. Begins and ends with a barrier.
  __device__ __forceinline__ void store(int i) const {
    __syncthreads();
    if constexpr (kOnlyComputes && kColumnIsFixed) {
      store_column(i);
    } else {
#pragma unroll 1
      for (int pass = 0; pass < kPasses; pass += kTogether) {
        if constexpr (kOnlyComputes) {
          store_vectors(i, thread_ + pass * kThreads);
        } else {
#pragma unroll
          for (int j = 0; j < kTogether; ++j) {
            const int index = thread_ + (pass + j) * kThreads;
            if (kVectors % kThreads == 0 || index < kVectors) store_vector(i, index);
          }
        }
      }
    }
    if constexpr (kRealigns) {
      __syncthreads();
      store_lines(i);
    }
    if constexpr (Epilogue::kReductions > 0) {
      reductions_.end_band(
          parameters_.epilogue, block_, [&](int row) { return row_of(row, i); }, ptx::Synchronize{});
    } else {
      __syncthreads();
    }
  }

  /// Must be called after the last band.
  __device__ __forceinline__ void end() const { reductions_.end(parameters_.epilogue, block_, 0, ptx::Synchronize{}); }

 private:
  static __device__ __forceinline__ int band_row(int index) {
    return kByRows ? index / kVectorsPerRow : index % kBandRows;
  }
  static __device__ __forceinline__ int band_column(int index) {
    return (kByRows ? index % kVectorsPerRow : index / kBandRows) * kVector;
  }
  __device__ __forceinline__ void read(Compute (&values)[kVector], int row, int column) const {
#pragma unroll
    for (int v = 0; v < kVector; ++v) values[v] = band_[row * kLine + column + v];
  }

  /// Stores this thread's vectors of the i-th band, which begin in the same column. Their addresses in the band and in D
  /// are at constant distances from those of the first, as a band has a power of two of rows: below row r < kRowStep,
  /// Bands::tile_row(r + n * kRowStep, i) is tile_row(r, i) + tile_row(n * kRowStep, 0).
  __device__ __forceinline__ void store_column(int i) const {
    static_assert((kBandRows & (kBandRows - 1)) == 0 && (kRowStep & (kRowStep - 1)) == 0);
    const int first = thread_ / kVectorsPerRow, band_column = thread_ % kVectorsPerRow * kVector;
    const int row = row_of(first, i), column = block_.column + band_column;
    D* const line = output_.line(row, column);
    const auto is_in_band = [&](int below) { return kBandRows % kRowStep == 0 || first + below < kBandRows; };
#pragma unroll
    for (int pass = 0; pass < kPasses; pass += kTogether) {
      Vector<D, kVector / kPerElement> computed[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int below = (pass + j) * kRowStep, inside = is_in_band(below) ? first + below : 0;
        Compute values[kVector];
        read(values, inside, band_column);
        computed[j] = output_.compute(row, column, values, reductions_, inside, band_column);
      }
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int below = (pass + j) * kRowStep;
        if (is_in_band(below)) output_.store_below(row, column, line, Bands::tile_row(below, 0), computed[j]);
      }
    }
  }

  /// Stores kTogether vectors of the i-th band, from number `index` on in steps of kThreads.
  __device__ __forceinline__ void store_vectors(int i, int index) const {
    Vector<D, kVector / kPerElement> computed[kTogether];
    const auto number = [&](int j) { return index + j * kThreads; };
    const auto is_in_band = [&](int j) { return kVectors % kThreads == 0 || number(j) < kVectors; };
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int inside = is_in_band(j) ? number(j) : 0;
      const int row = band_row(inside), column = band_column(inside);
      Compute values[kVector];
      read(values, row, column);
      computed[j] = output_.compute(row_of(row, i), block_.column + column, values, reductions_, row, column);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      if (!is_in_band(j)) continue;
      output_.store_computed(row_of(band_row(number(j)), i), block_.column + band_column(number(j)), computed[j]);
    }
  }

  /// Stores vector number `index` of the i-th band, or leaves its elements of D in the band if the rows are realigned.
  __device__ __forceinline__ void store_vector(int i, int index) const {
    const int row = band_row(index), column = band_column(index);
    Compute values[kVector];
    read(values, row, column);
    if constexpr (kRealigns) {
      compute(i, row, column, values);
    } else {
      output_.store(row_of(row, i), block_.column + column, values, reductions_, row, column);
    }
  }

  /// Replaces `values`, which a thread read at (row, column) of the i-th band, by the elements of D.
  __device__ __forceinline__ void compute(int i, int row, int column, const Compute (&values)[kVector]) const {
    if (row_of(row, i) >= output_.end_m()) {
      reductions_.template skip<kVector>(parameters_.epilogue, row, column);
    } else {
      ptx::store_shared(place(row, column),
                        output_.compute(row_of(row, i), block_.column + column, values, reductions_, row, column));
    }
  }

  /// Stores the rows of the i-th band, whose elements of D compute() has left there.
  __device__ __forceinline__ void store_lines(int i) const {
    using Store =
        LineStore<D, Plan::kTileN / kPerElement, kVector / kPerElement * kDBytes, Plan::kAlignmentD * kDBytes>;
    Store::template store<kThreads, kBandRows>(
        thread_, [&](int row) { return output_.line(row_of(row, i), block_.column); },
        [&](int row) { return row_of(row, i) < output_.end_m() ? (output_.end_n() - block_.column) / kPerElement : 0; },
        [&](int row, int chunk) { return place(row, chunk * kVector); });
  }

  /// The shared address of the element at (row, column) of the band.
  __device__ __forceinline__ uint32_t place(int row, int column) const {
    return ptx::shared_address(band_) + (row * kLine + column) * static_cast<int>(sizeof(Compute));
  }

  /// The row of D at row `row` of the i-th band.
  __device__ __forceinline__ int row_of(int row, int i) const { return block_.row + Bands::tile_row(row, i); }

  const Parameters& parameters_;
  Tile output_;
  Reductions reductions_;
  Compute* band_;
  typename Reductions::Block block_;
  int thread_;
};

}  // namespace tilewright
