// Reductions of values that are distributed over the threads in any order. They work on one band of rows at a time: the
// threads store their values to a band in shared memory, then each thread reduces a row or a column of it.
#pragma once

#include "tilewright/epilogue/reduction.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A band has kRows x kColumns elements, which kThreads threads reduce. Blocks are those of ReductionParts. Tile is the
/// scheduler's.
template <class Epilogue, int kRows, int kColumns, int kBlockM, int kBlockN, int kShares, int kThreads,
          class Tile = TileOrigin>
class BandReductions {
  using Compute = typename Epilogue::Compute;
  static constexpr int kElementBytes = sizeof(Compute);
  static constexpr int kLine = kColumns + 1;  // rows begin at different banks
  static constexpr int kBandBytes = kRows * kLine * kElementBytes;
  static constexpr int kColumnsFrom = Epilogue::kReductions * kBandBytes;
  static constexpr int kSinglesFrom = kColumnsFrom + Epilogue::kColumnResults * kColumns * kElementBytes;
  static constexpr int kPartsFrom = ceil_div(kSinglesFrom + Epilogue::kSingleResults * kRows * kElementBytes, 16) * 16;

 public:
  using Parts = ReductionParts<Epilogue, kBlockM, kBlockN, kShares, kThreads, Tile>;
  using Block = typename Parts::Block;
  /// Shared memory, in bytes: a band for each reduction, and for column and full reductions the partial results of the
  /// bands so far.
  static constexpr int kBytes = Epilogue::kReductions == 0 ? 0 : kPartsFrom + ceil_div(Parts::kSharedBytes, 16) * 16;

  /// `shared` is the address of kBytes.
  template <class Parameters>
  __device__ __forceinline__ BandReductions(const Parameters& parameters, char* counters, char* parts, int m, int n,
                                            int batches, uint32_t shared, int thread)
      : parts_(parameters, counters, parts, m, n, batches, shared + kPartsFrom, thread),
        shared_(shared),
        m_(m),
        n_(n),
        thread_(thread) {}

  /// Must be called before a block's first band, when the shared memory is free.
  template <class Parameters>
  __device__ __forceinline__ void begin(const Parameters& parameters) const {
    if constexpr (Epilogue::kReductions > 0) Epilogue::for_each_reduction(parameters, Begin{*this});
  }

  /// Stores values of adjacent columns to row `row` of the band, from column `column` on.
  template <class Reduction, int kCount>
  __device__ __forceinline__ void put(const Compute (&values)[kCount], const EpiloguePlace& at, int row,
                                      int column) const {
    Compute inside[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) inside[i] = values[i];
    mask_outside(inside, at, Reduction::Fold::identity());
#pragma unroll
    for (int i = 0; i < kCount; ++i) ptx::store_shared(address(Reduction::kNumber, row, column + i), inside[i]);
  }
  /// Stores the identity in place of kCount values that lie outside D.
  template <int kCount, class Parameters>
  __device__ __forceinline__ void skip(const Parameters& parameters, int row, int column) const {
    if constexpr (Epilogue::kReductions > 0) Epilogue::for_each_reduction(parameters, Skip<kCount>{*this, row, column});
  }

  /// With split-K, stores the identity as this share's partial result of each row of the block that is not in the band
  /// whose first row is row `first` of the block.
  template <class Parameters>
  __device__ __forceinline__ void skip_rows(const Parameters& parameters, const Block& block, int first) const {
    if constexpr (Epilogue::kRowResults > 0) Epilogue::for_each_reduction(parameters, SkipRows{*this, block, first});
  }

  /// Must be called when put() or skip() was called for every element of the band. row_of(row) is the row of D at row
  /// `row` of the band. Begins and ends with a barrier if the epilogue has reductions.
  template <class Parameters, class RowOf, class Barrier>
  __device__ __forceinline__ void end_band(const Parameters& parameters, const Block& block, const RowOf& row_of,
                                           const Barrier& barrier) const {
    if constexpr (Epilogue::kReductions > 0) {
      barrier();
      Epilogue::for_each_reduction(parameters, EndBand<RowOf>{*this, block, row_of});
      barrier();
    }
  }

  /// Must be called after the block's last band. Stores the block's partial results to the workspace; if they are the
  /// last ones of a result, also stores the result. Column 0 of the bands is column `first_column` of the block.
  template <class Parameters, class Barrier>
  __device__ __forceinline__ void end(const Parameters& parameters, const Block& block, int first_column,
                                      const Barrier& barrier) const {
    if constexpr (Epilogue::kReductions > 0) {
      Epilogue::for_each_reduction(parameters, End{*this, block, first_column});
      parts_.meet(block, barrier);
    }
  }

 private:
  struct Begin {
    const BandReductions& all;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
      const Compute identity = Reduction::Fold::identity();
      if constexpr (Reduction::kResults == Results::columns) {
        for (int i = all.thread_; i < kColumns; i += kThreads)
          ptx::store_shared(all.column_address(Reduction::kOfKind, i), identity);
      } else if constexpr (Reduction::kResults == Results::single) {
        for (int i = all.thread_; i < kRows; i += kThreads)
          ptx::store_shared(all.single_address(Reduction::kOfKind, i), identity);
      }
    }
  };

  template <int kCount>
  struct Skip {
    const BandReductions& all;
    int row, column;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        ptx::store_shared(all.address(Reduction::kNumber, row, column + i), Reduction::Fold::identity());
    }
  };

  struct SkipRows {
    const BandReductions& all;
    const Block& block;
    int first;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
      if constexpr (Reduction::kResults == Results::rows) {
        for (int row = all.thread_; row < kBlockM && block.row + row < all.m_; row += kThreads) {
          if (row >= first && row < first + kRows) continue;
          all.parts_.template leave<Reduction>(block, block.row + row, Reduction::Fold::identity());
        }
      }
    }
  };

  template <class RowOf>
  struct EndBand {
    const BandReductions& all;
    const Block& block;
    const RowOf& row_of;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
      using Fold = typename Reduction::Fold;
      constexpr int kNumber = Reduction::kNumber;
      if constexpr (Reduction::kResults == Results::columns) {
        for (int column = all.thread_; column < kColumns; column += kThreads) {
          const uint32_t to = all.column_address(Reduction::kOfKind, column);
          Compute value = ptx::load_shared<Compute>(to);
#pragma unroll 8
          for (int row = 0; row < kRows; ++row)
            value = Fold::combine(value, ptx::load_shared<Compute>(all.address(kNumber, row, column)));
          ptx::store_shared(to, value);
        }
      } else {
        for (int row = all.thread_; row < kRows; row += kThreads) {
          Compute value = Fold::identity();
#pragma unroll 8
          for (int column = 0; column < kColumns; ++column)
            value = Fold::combine(value, ptx::load_shared<Compute>(all.address(kNumber, row, column)));
          if constexpr (Reduction::kResults == Results::single) {
            const uint32_t to = all.single_address(Reduction::kOfKind, row);
            ptx::store_shared(to, Fold::combine(ptx::load_shared<Compute>(to), value));
          } else if (row_of(row) < block.tile.end_m(all.m_)) {
            all.parts_.template leave<Reduction>(block, row_of(row), value);
          }
        }
      }
    }
  };

  struct End {
    const BandReductions& all;
    const Block& block;
    int first_column;

    template <class Reduction, class Tensor>
    __device__ __forceinline__ void visit(const Tensor& /*tensor*/) const {
      using Fold = typename Reduction::Fold;
      if constexpr (Reduction::kResults == Results::columns) {
        for (int column = all.thread_; column < kBlockN && block.column + column < block.tile.end_n(all.n_);
             column += kThreads) {
          const int in_band = column - first_column;
          const bool is_there = in_band >= 0 && in_band < kColumns;
          all.parts_.template leave<Reduction>(
              block, block.column + column,
              is_there ? ptx::load_shared<Compute>(all.column_address(Reduction::kOfKind, in_band)) : Fold::identity());
        }
      } else if constexpr (Reduction::kResults == Results::single) {
        if (all.thread_ != 0) return;
        Compute value = Fold::identity();
#pragma unroll 1
        for (int row = 0; row < kRows; ++row)
          value = Fold::combine(value, ptx::load_shared<Compute>(all.single_address(Reduction::kOfKind, row)));
        all.parts_.template leave_single<Reduction>(block, value);
      }
    }
  };

  __device__ __forceinline__ uint32_t address(int number, int row, int column) const {
    return shared_ + number * kBandBytes + (row * kLine + column) * kElementBytes;
  }
  __device__ __forceinline__ uint32_t column_address(int number, int column) const {
    return shared_ + kColumnsFrom + (number * kColumns + column) * kElementBytes;
  }
  __device__ __forceinline__ uint32_t single_address(int number, int row) const {
    return shared_ + kSinglesFrom + (number * kRows + row) * kElementBytes;
  }

  Parts parts_;
  uint32_t shared_;
  int m_, n_, thread_;
};

/// An EpiloguePlace whose reduced values go to a band.
template <class Reductions>
struct BandPlace : EpiloguePlace {
  const Reductions& reductions;
  int band_row, band_column;

  template <class Reduction, class Compute, int kCount>
  __device__ __forceinline__ void reduce(const Compute (&values)[kCount]) const {
    reductions.template put<Reduction>(values, *this, band_row, band_column);
  }
};

}  // namespace tilewright
