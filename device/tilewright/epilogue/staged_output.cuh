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
  // Whether the epilogue has no outputs but D, whose rows are contiguous, so that a thread may compute several vectors
  // before it stores the first of them. Otherwise each load of C waits for the stores before it. In f64, the first
  // multiplication after a load waits for the mma.sync of other warps, which use the same unit: one wait for each
  // vector of two elements took a fifth of the time of a kernel with K = 272 (H200, 2026-11-27).
  static constexpr bool kStoresOnlyD = kByRows && !Epilogue::kHasTensors;
  /// Vectors of a thread whose latencies overlap.
  static __device__ constexpr int together() {
    constexpr int kBytesInRegisters = 64;  // with 128, f64 tiles of 64x64 took 174 registers instead of 168
    constexpr int kMost = 4;               // each vector has an address, too
    int count = 2;
    if (kStoresOnlyD) {
      count = kBytesInRegisters / (kVector * static_cast<int>(sizeof(Compute)));
      count = maximum(minimum(count, kMost), 1);  // a vector of 16 gated bytes takes 32 columns of A*B
    }
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
    store_vectors(i);
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
  /// Where a vector of this thread is: its row and column in the band, and its row of D.
  struct Place {
    int band_row, band_column, row;
  };
  /// The place of vector number `index` of the i-th band.
  __device__ __forceinline__ Place place_of(int index, int i) const {
    const int band_row = kByRows ? index / kVectorsPerRow : index % kBandRows;
    return {band_row, (kByRows ? index % kVectorsPerRow : index / kBandRows) * kVector, row_of(band_row, i)};
  }
  /// The place of this thread's vector number pass + j, where `first` is the place of number 0, pass is a multiple of
  /// kTogether, and j is less than kTogether. The vectors of one column are at constant distances: as a band has a
  /// power of two of rows, tile_row() of the sum of two rows without a common bit is the sum of its values for both.
  __device__ __forceinline__ Place place_of(const Place& first, int pass, int j, int i) const {
    if constexpr (kColumnIsFixed) {
      static_assert((kBandRows & (kBandRows - 1)) == 0 && (kRowStep & (kRowStep - 1)) == 0);
      const int below = pass * kRowStep, more = j * kRowStep;
      return {first.band_row + below + more, first.band_column,
              first.row + Bands::tile_row(below, 0) + Bands::tile_row(more, 0)};
    } else {
      return place_of(thread_ + (pass + j) * kThreads, i);
    }
  }
  static __device__ __forceinline__ bool is_in_band(const Place& place) {
    if (kVectors % kThreads == 0) return true;
    return kByRows ? place.band_row < kBandRows : place.band_column < Plan::kTileN;
  }
  __device__ __forceinline__ void read(Compute (&values)[kVector], int row, int column) const {
#pragma unroll
    for (int v = 0; v < kVector; ++v) values[v] = band_[row * kLine + column + v];
  }

  /// Stores this thread's vectors of the i-th band, or leaves their elements of D in the band if the rows are
  /// realigned.
  __device__ __forceinline__ void store_vectors(int i) const {
    // An unrolled loop reaches D at constant distances, so that a store takes 7 instructions instead of 40. If it also
    // reads C, tiles of 128x128 of tf32 spill.
    constexpr bool kUnrolls = kStoresOnlyD && kColumnIsFixed && !kRealigns && !Epilogue::kReadsSource;
    constexpr int kUnrolled = kUnrolls ? kPasses / kTogether : 1;
    const Place first = place_of(thread_, i);
    D* const line = kStoresOnlyD && !kRealigns ? output_.line(first.row, block_.column + first.band_column) : nullptr;
#pragma unroll kUnrolled
    for (int pass = 0; pass < kPasses; pass += kTogether) {
      if constexpr (kStoresOnlyD) {
        Vector<D, kVector / kPerElement> computed[kTogether];
#pragma unroll
        for (int j = 0; j < kTogether; ++j) {
          const Place place = place_of(first, pass, j, i);
          if (is_in_band(place)) computed[j] = compute(place);
        }
#pragma unroll
        for (int j = 0; j < kTogether; ++j) {
          const Place place = place_of(first, pass, j, i);
          const int column = block_.column + place.band_column;
          if (!is_in_band(place)) continue;
          if constexpr (kRealigns) {
            ptx::store_shared(shared_address(place.band_row, place.band_column), computed[j]);
          } else if constexpr (kColumnIsFixed) {
            output_.store_below(first.row, column, line, place.row - first.row, computed[j]);
          } else {
            output_.store_computed(place.row, column, computed[j]);
          }
        }
      } else {
#pragma unroll
        for (int j = 0; j < kTogether; ++j) {
          const Place place = place_of(first, pass, j, i);
          if (is_in_band(place)) store_vector(place);
        }
      }
    }
  }

  __device__ __forceinline__ void store_vector(const Place& place) const {
    if constexpr (!kRealigns) {
      Compute values[kVector];
      read(values, place.band_row, place.band_column);
      output_.store(place.row, block_.column + place.band_column, values, reductions_, place.band_row,
                    place.band_column);
    } else if (place.row < output_.end_m()) {
      ptx::store_shared(shared_address(place.band_row, place.band_column), compute(place));
    } else {
      reductions_.template skip<kVector>(parameters_.epilogue, place.band_row, place.band_column);
    }
  }

  /// The elements of D of the vector that the threads have staged at `place`.
  __device__ __forceinline__ Vector<D, kVector / kPerElement> compute(const Place& place) const {
    Compute values[kVector];
    read(values, place.band_row, place.band_column);
    return output_.compute(place.row, block_.column + place.band_column, values, reductions_, place.band_row,
                           place.band_column);
  }

  /// Stores the rows of the i-th band, whose elements of D compute() has left there.
  __device__ __forceinline__ void store_lines(int i) const {
    using Store =
        LineStore<D, Plan::kTileN / kPerElement, kVector / kPerElement * kDBytes, Plan::kAlignmentD * kDBytes>;
    Store::template store<kThreads, kBandRows>(
        thread_, [&](int row) { return output_.line(row_of(row, i), block_.column); },
        [&](int row) { return row_of(row, i) < output_.end_m() ? (output_.end_n() - block_.column) / kPerElement : 0; },
        [&](int row, int chunk) { return shared_address(row, chunk * kVector); });
  }

  /// The shared address of the element at (row, column) of the band.
  __device__ __forceinline__ uint32_t shared_address(int row, int column) const {
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
