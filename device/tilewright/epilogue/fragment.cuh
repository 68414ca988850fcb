// Which elements of a 64-row tile a thread's accumulators of wgmma are, and C at those.
#pragma once

#include "tilewright/gemm/sm90_parameters.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Four accumulators for every 8 columns: thread t's lie in rows t/4%8 and 8 more (with kPairsRows: 2*(t/4%8) and the
/// next) of warp t/32's 16, columns 2*(t%4) and the next.
template <bool kPairsRows>
struct FragmentRows {
  static constexpr int kLaneRows = kPairsRows ? 2 : 1;  // from one group of four lanes to the next
  static constexpr int kOtherRow = kPairsRows ? 1 : 8;  // between the two of a thread

  static __device__ __forceinline__ int row(int thread) { return thread / 32 * 16 + thread % 32 / 4 * kLaneRows; }
  static __device__ __forceinline__ int column(int thread) { return thread % 4 * 2; }
};

/// Where one thread reads C: what lies at its accumulators. Zeros outside, and where nothing is read.
/// Plan: ElementC, kCIsRowMajor, kPairsRows.
template <class Plan, class Epilogue>
class FragmentSource {
  using C = typename Plan::ElementC;
  using Compute = typename Epilogue::Compute;
  static constexpr int kOtherRow = FragmentRows<Plan::kPairsRows>::kOtherRow;

 public:
  /// The thread's first row and column, of C.
  template <class Parameters>
  __device__ __forceinline__ FragmentSource(const Parameters& parameters, int row, int column, int batch)
      : ld_(parameters.c.ld), rows_left_(0), columns_left_(parameters.n - column) {
    from_ = static_cast<const C*>(parameters.c.address) + batch * parameters.c.batch_stride +
            (Plan::kCIsRowMajor ? row * ld_ + column : row + column * ld_);
    if (Epilogue::kReadsSource && Epilogue::reads_source(parameters.epilogue)) rows_left_ = parameters.m - row;
  }

  /// Pairs of neighbours `first` columns on, each with the pair of the thread's other row, for each group of 8 columns.
  template <int kCount>
  __device__ __forceinline__ void load(Compute (&source)[kCount], int first) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) source[i] = Compute(0);
    if (!Epilogue::kReadsSource || rows_left_ <= 0) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int row = i / 2 % 2 * kOtherRow;
      const int column = first + i / 4 * 8 + i % 2;
      if (row < rows_left_ && column < columns_left_) {
        source[i] = convert<Compute>(from_[Plan::kCIsRowMajor ? row * ld_ + column : row + column * ld_]);
      }
    }
  }

 private:
  const C* from_;
  int64_t ld_;
  int rows_left_, columns_left_;
};

}  // namespace tilewright
