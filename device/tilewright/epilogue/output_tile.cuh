// Stores accumulators to D with plain stores: loads C if the epilogue reads it, applies the epilogue, rounds once, and
// stores.
#pragma once

#include "tilewright/epilogue/band_reductions.cuh"
#include "tilewright/epilogue/epilogue_tensor.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/folded_matrix.cuh"
#include "tilewright/operand/matrix_layout.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/scheduler/tile_origin.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Plan: ElementC, ElementD, LayoutC, LayoutD (operand/matrix_layout.cuh), MatrixC, MatrixD, kAlignmentC, kAlignmentD
/// (elements), kCIsPointerArray, kDIsPointerArray, kTileM, kTileN, kSplitK, kReductionCounters (an offset in the
/// workspace). D's rows are contiguous unless the epilogue pairs columns. Parameters of the kernel: matrix_c, matrix_d
/// (operand/matrix_parameters.cuh), c, d, ldc, ldd, batch_stride_c, batch_stride_d, m, n, batch, workspace,
/// reduction_parts, epilogue. Epilogue: Compute, Parameters, kReadsSource, reads_source(parameters), kColumnsPerElement
/// (columns of A*B for each one of D), apply(values, source, parameters, place): `values` are adjacent accumulators of
/// a row; afterwards the first of each kColumnsPerElement is the element of D. Tile is the scheduler's.
template <class Plan, class Epilogue, class Parameters, class Tile = TileOrigin>
class OutputTile {
  using C = typename Plan::ElementC;
  using D = typename Plan::ElementD;
  using LayoutC = typename Plan::LayoutC;
  using LayoutD = typename Plan::LayoutD;
  using Compute = typename Epilogue::Compute;
  static constexpr int kPerElement = Epilogue::kColumnsPerElement;
  static constexpr bool kCIsStrided = is_same<typename Plan::MatrixC, StridedMatrix>;
  static constexpr bool kDIsStrided = is_same<typename Plan::MatrixD, StridedMatrix>;
  static_assert(kDIsStrided || kPerElement == 1, "the elements of a folded D are not pairs of columns");

 public:
  /// The reductions of a CTA's tile in bands of kRows rows, by kThreads threads.
  template <int kRows, int kThreads>
  using Reductions =
      BandReductions<Epilogue, kRows, Plan::kTileN, Plan::kTileM, Plan::kTileN, Plan::kSplitK, kThreads, Tile>;
  template <int kRows, int kThreads>
  static __device__ __forceinline__ Reductions<kRows, kThreads> reductions(const Parameters& parameters,
                                                                           uint32_t shared) {
    return {parameters.epilogue,
            parameters.workspace + Plan::kReductionCounters,
            parameters.workspace + parameters.reduction_parts,
            parameters.m,
            parameters.n,
            static_cast<int>(parameters.batch),
            shared,
            static_cast<int>(threadIdx.x)};
  }

  /// `tile` says to which matrix of the batch the elements belong, and which of its rows and columns may be stored.
  __device__ __forceinline__ OutputTile(const Parameters& parameters, const Tile& tile)
      : parameters_(parameters),
        tile_(tile),
        c_(matrix_of_batch<Plan::kCIsPointerArray, const C>(parameters.c, parameters.batch_stride_c,
                                                            static_cast<uint32_t>(tile.batch)) +
           folded_batch_offset(matrix_of(parameters.matrix_c), tile.batch)),
        d_(matrix_of_batch<Plan::kDIsPointerArray, D>(parameters.d, parameters.batch_stride_d,
                                                      static_cast<uint32_t>(tile.batch)) +
           folded_batch_offset(matrix_of(parameters.matrix_d), tile.batch)),
        reads_source_(Epilogue::kReadsSource && Epilogue::reads_source(parameters.epilogue)) {}

  /// Stores kCount adjacent columns of one row, leaving out those outside D. They begin at (row, column) of D and at
  /// (band_row, band_column) of a band of `reductions`. `column` must be a multiple of kCount.
  template <int kCount, class Accumulator, class Reductions>
  __device__ __forceinline__ void store(int row, int column, const Accumulator (&accumulator)[kCount],
                                        const Reductions& reductions, int band_row, int band_column) const {
    if (row >= end_m()) return reductions.template skip<kCount>(parameters_.epilogue, band_row, band_column);
    static_assert(kCount <= kInterleaved, "vectors are contiguous in an interleaved matrix");
    constexpr int kVector = LayoutD::kRowsAreContiguous ? minimum(kCount, Plan::kAlignmentD * kPerElement) : kCount;
    D* const d_of_row = line(row, column);
#pragma unroll
    for (int first = 0; first < kCount; first += kVector) {
      // A vector of a folded D may be in another place than the one before.
      D* const d = kDIsStrided ? d_of_row + first / kPerElement : line(row, column + first);
      Accumulator part[kVector];
#pragma unroll
      for (int i = 0; i < kVector; ++i) part[i] = accumulator[first + i];
      const auto out = compute(row, column + first, part, reductions, band_row, band_column + first);
      store_elements(row, column + first, out, d);
    }
  }

  /// Stores what compute() returned for kCount adjacent columns of one row, leaving out those outside D. The row may be
  /// outside D.
  template <int kCount>
  __device__ __forceinline__ void store_computed(int row, int column, const Vector<D, kCount>& out) const {
    static_assert(LayoutD::kRowsAreContiguous && kCount <= Plan::kAlignmentD);
    if (row < end_m()) store_elements(row, column, out, line(row, column));
  }

  /// store_computed(row + below, column, out), where `first` is line(row, column).
  template <int kCount>
  __device__ __forceinline__ void store_below(int row, int column, D* first, int below,
                                              const Vector<D, kCount>& out) const {
    static_assert(LayoutD::kRowsAreContiguous && kCount <= Plan::kAlignmentD);
    constexpr bool kRowsAreApart = kDIsStrided && is_same<LayoutD, RowMajor>;  // by ldd, as those of blocks are not
    D* const to = kRowsAreApart ? first + below * tile_.ldd(parameters_.ldd) : line(row + below, column);
    const bool is_inside = row + below < end_m();
    if (is_inside & (column + kCount * kPerElement <= end_n())) {
      *reinterpret_cast<Vector<D, kCount>*>(to) = out;
    } else if (kCount > 1 && is_inside) {
      store_elements(row + below, column, out, to);
    }
  }

  /// The elements of D that belong to kCount adjacent columns of one row, for the caller to store. The other outputs
  /// are stored here; if there are some, the row must be inside D. The arguments are those of store().
  template <int kCount, class Accumulator, class Reductions>
  __device__ __forceinline__ Vector<D, kCount / Epilogue::kColumnsPerElement> compute(
      int row, int column, const Accumulator (&accumulator)[kCount], const Reductions& reductions, int band_row,
      int band_column) const {
    Compute source[kCount] = {};
    if (reads_source_ && row < end_m()) load_source(source, row, column);
    Compute values[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = convert<Compute>(accumulator[i]);
    Epilogue::apply(
        values, source, parameters_.epilogue,
        BandPlace<Reductions>{{row, column, tile_.batch, end_m(), end_n()}, reductions, band_row, band_column});
    Vector<D, kCount / kPerElement> out;
#pragma unroll
    for (int i = 0; i < kCount / kPerElement; ++i) out.element[i] = convert<D>(values[i * kPerElement]);
    return out;
  }

  /// The address of the element of D at columns `column` and following of A*B.
  __device__ __forceinline__ D* line(int row, int column) const {
    return d_ +
           offset_in<LayoutD>(matrix_of(parameters_.matrix_d), row, column / kPerElement, tile_.ldd(parameters_.ldd));
  }

  /// The end of the rows of D, and of the columns of A*B, that may be stored.
  __device__ __forceinline__ int end_m() const { return tile_.end_m(parameters_.m); }
  __device__ __forceinline__ int end_n() const { return tile_.end_n(parameters_.n); }

 private:
  /// Stores adjacent elements of a row from `column` of A*B on, leaving out those outside D. `d` is where the first one
  /// is if the rows of D are contiguous.
  template <int kCount>
  __device__ __forceinline__ void store_elements(int row, int column, const Vector<D, kCount>& out, D* d) const {
    if constexpr (!LayoutD::kRowsAreContiguous) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int at = column + i * kPerElement;
        if (at < end_n()) *line(row, at) = out.element[i];
      }
    } else if (column + kCount * kPerElement <= end_n()) {
      *reinterpret_cast<Vector<D, kCount>*>(d) = out;
    } else {
#pragma unroll
      for (int i = 0; i < kCount - 1; ++i) {
        if (column + i * kPerElement < end_n()) d[i] = out.element[i];
      }
    }
  }

  template <int kCount>
  __device__ __forceinline__ void load_source(Compute (&source)[kCount], int row, int column) const {
    if constexpr (LayoutC::kRowsAreContiguous) {
      constexpr int kVector = minimum(kCount, Plan::kAlignmentC);
      const C* const c_of_row = source_at(row, column);
#pragma unroll
      for (int first = 0; first < kCount; first += kVector) {
        const C* const at = kCIsStrided ? c_of_row + first : source_at(row, column + first);
        if (column + first + kVector <= end_n()) {
          const auto in = *reinterpret_cast<const Vector<C, kVector>*>(at);
#pragma unroll
          for (int i = 0; i < kVector; ++i) source[first + i] = convert<Compute>(in.element[i]);
        } else {
#pragma unroll
          for (int i = 0; i < kVector - 1; ++i) {
            if (column + first + i < end_n()) source[first + i] = convert<Compute>(at[i]);
          }
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (column + i < end_n()) source[i] = convert<Compute>(*source_at(row, column + i));
      }
    }
  }

  __device__ __forceinline__ const C* source_at(int row, int column) const {
    return c_ + offset_in<LayoutC>(matrix_of(parameters_.matrix_c), row, column, tile_.ldc(parameters_.ldc));
  }

  const Parameters& parameters_;
  Tile tile_;
  const C* c_;  // this matrix of the batch
  D* d_;
  bool reads_source_;
};

}  // namespace tilewright
