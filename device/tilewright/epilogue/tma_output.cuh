// Accumulators of wgmma to D: the epilogue in registers, then through swizzled shared memory by TMA, a chunk of columns
// at a time. The store of one chunk overlaps the next chunk's epilogue, and that of the last the next tile.
#pragma once

#include "tilewright/gemm/sm90_parameters.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// One warpgroup's way out. Plan: ElementC, ElementD, kTileN, kAccumulatesInHalf, kChunkColumns (of one TMA box: 64
/// rows of at most 128 bytes), kOutputBuffers.
template <class Plan, class Epilogue>
class TmaOutput {
  using C = typename Plan::ElementC;
  using D = typename Plan::ElementD;
  using Compute = typename Epilogue::Compute;
  using Parameters = Sm90GemmParameters<typename Epilogue::Scalars>;
  static constexpr int kColumns = Plan::kChunkColumns;
  static constexpr int kRowBytes = kColumns * static_cast<int>(sizeof(D));
  static constexpr int kRows = 64;
  static constexpr int kChunkBytes = kRows * kRowBytes;
  static constexpr int kChunks = Plan::kTileN / kColumns;
  static_assert(Plan::kTileN % kColumns == 0, "chunks cover the tile");
  static_assert(kRowBytes == 128 || kRowBytes == 64 || kRowBytes == 32 || kRowBytes == 16, "a swizzle's width");
  /// 16-byte units of a row are exclusive-ored with the row's number, as far as the line of 128 bytes repeats.
  static constexpr int kSwizzleMask = kRowBytes / 16 - 1;
  static constexpr int kRowsPerLine = 128 / kRowBytes;

 public:
  static constexpr int kBytes = Plan::kOutputBuffers * kChunkBytes;  // of shared memory, for each warpgroup

  /// `buffers` is the shared address of kBytes, `barrier` a named barrier of this warpgroup alone.
  __device__ __forceinline__ TmaOutput(const Parameters& parameters, uint32_t buffers, int thread, int barrier)
      : parameters_(parameters),
        buffers_(buffers),
        thread_(thread),
        barrier_(barrier),
        reads_source_(Epilogue::kReadsSource && Epilogue::reads_source(parameters.epilogue)) {}

  /// Stores 64 rows from `row` on; the accumulators of thread t, 8 columns apart: rows t/4%8 and 8 more of warp t/32's
  /// 16, columns 2*(t%4) and the next.
  template <class Accumulators>
  __device__ __forceinline__ void store(const Accumulators& accumulators, int row, int column, int batch) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const uint32_t buffer = buffers_ + buffer_ * kChunkBytes;
      buffer_ = buffer_ + 1 == Plan::kOutputBuffers ? 0 : buffer_ + 1;
      if (thread_ == 0) ptx::tma_store_wait_read<Plan::kOutputBuffers - 1>();
      ptx::named_barrier(barrier_, 128);
      stage(accumulators, chunk, buffer, row, column + chunk * kColumns, batch);
      ptx::fence_proxy_async();
      ptx::named_barrier(barrier_, 128);
      if (thread_ == 0) {
        ptx::tma_store(parameters_.d, buffer, column + chunk * kColumns, row, batch);
        ptx::tma_store_commit();
      }
    }
  }

  /// Before the CTA ends: the stores have read shared memory.
  __device__ __forceinline__ void finish() const {
    if (thread_ == 0) ptx::tma_store_wait_read<0>();
  }

 private:
  template <class Accumulators>
  __device__ __forceinline__ void stage(const Accumulators& accumulators, int chunk, uint32_t buffer, int row,
                                        int column, int batch) const {
    const int lane = thread_ % 32;
    const int warp_row = thread_ / 32 * 16;
#pragma unroll
    for (int group = 0; group < kColumns / 8; group += kGroups) {
      const int first = (chunk * kColumns / 8 + group) * 4;
      Compute source[4 * kGroups] = {};
      if (reads_source_) load_source(source, row + warp_row + lane / 4, column + group * 8 + lane % 4 * 2, batch);
      Vector<D, 2> out[2 * kGroups];
#pragma unroll
      for (int i = 0; i < 4 * kGroups; ++i) {
        out[i / 2].element[i % 2] = convert<D>(
            Epilogue::apply(convert<Compute>(element(accumulators, first + i)), source[i], parameters_.epilogue));
      }
      if constexpr (sizeof(D) == 2) {
        // Lane l addresses row l%8 of matrix l/8: the matrices are rows 0 to 7 and 8 to 15 of one group of columns,
        // then of the next.
        const int matrix = lane / 8;
        const uint32_t to = buffer + swizzled_offset(warp_row + matrix % 2 * 8 + lane % 8, (group + matrix / 2) * 8);
        uint32_t packed[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) packed[i] = __builtin_bit_cast(uint32_t, out[i]);
        ptx::stmatrix_x4(to, packed);
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          ptx::store_shared(buffer + swizzled_offset(warp_row + half * 8 + lane / 4, group * 8 + lane % 4 * 2),
                            out[half]);
        }
      }
    }
  }

  /// Groups of 8 columns that are stored together: stmatrix.x4 takes two.
  static constexpr int kGroups = sizeof(D) == 2 ? 2 : 1;
  static_assert(kColumns % (8 * kGroups) == 0, "a chunk is whole stores");

  /// One accumulator; those of f16 are two to a register.
  template <class Accumulators>
  static __device__ __forceinline__ auto element(const Accumulators& accumulators, int i) {
    if constexpr (Plan::kAccumulatesInHalf) {
      return half_t{static_cast<uint16_t>(accumulators[i / 2] >> (i % 2 * 16))};
    } else {
      return accumulators[i];
    }
  }

  static __device__ __forceinline__ uint32_t swizzled_offset(int row, int column) {
    const uint32_t byte = column * static_cast<int>(sizeof(D));
    return row * kRowBytes + (byte ^ ((row / kRowsPerLine & kSwizzleMask) * 16));
  }

  /// Of C, what store() describes of the accumulators: pairs of neighbours at `row` and 8 below, for each group of 8
  /// columns. Zeros outside.
  __device__ __forceinline__ void load_source(Compute (&source)[4 * kGroups], int row, int column, int batch) const {
    const C* const c = static_cast<const C*>(parameters_.c) + batch * parameters_.batch_stride_c;
#pragma unroll
    for (int i = 0; i < 4 * kGroups; ++i) {
      const int at_row = row + i / 2 % 2 * 8;
      const int at_column = column + i / 4 * 8 + i % 2;
      const int64_t at =
          Plan::kCIsRowMajor ? at_row * parameters_.ldc + at_column : at_row + at_column * parameters_.ldc;
      if (at_row < parameters_.m && at_column < parameters_.n) source[i] = convert<Compute>(c[at]);
    }
  }

  const Parameters& parameters_;
  uint32_t buffers_;
  int thread_;
  int barrier_;
  int buffer_ = 0;
  bool reads_source_;
};

}  // namespace tilewright
