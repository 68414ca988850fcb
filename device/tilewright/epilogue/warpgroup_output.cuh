// Accumulators of wgmma to D: the epilogue in registers, then through swizzled shared memory, a buffer of some columns
// at a time. From there chunks leave by TMA, which overlaps the next buffer's epilogue and the next tile, or, where D's
// lines do not begin and end at 16 bytes, by plain stores of whole lines.
#pragma once

#include "tilewright/epilogue/fragment.cuh"
#include "tilewright/epilogue/output_chunk.cuh"
#include "tilewright/gemm/sm90_parameters.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/ptx/warpgroup.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// One warpgroup's way out. Plan: ElementC, ElementD, Output (TmaMatrix or GlobalMatrix), kCIsRowMajor, kDIsRowMajor,
/// kAccumulatesInHalf, kPairsRows, kTileN, kChunkColumns, kBufferChunks (that a buffer holds), kOutputBuffers,
/// kStoreBytes (of a plain store).
template <class Plan, class Epilogue>
class WarpgroupOutput {
  using D = typename Plan::ElementD;
  using Compute = typename Epilogue::Compute;
  using Parameters = Sm90GemmParameters<Plan, typename Epilogue::Scalars>;
  using Chunk = OutputChunk<D, Plan::kDIsRowMajor, Plan::kChunkColumns>;
  static constexpr int kThreads = 128;
  static constexpr int kChunks = Plan::kTileN / Plan::kChunkColumns;
  static_assert(Plan::kTileN % Plan::kChunkColumns == 0, "chunks cover the columns");
  static constexpr int kBufferBytes = Plan::kBufferChunks * Chunk::kBytes;
  static constexpr bool kByTma = is_same<typename Plan::Output, TmaMatrix>;
  using Rows = FragmentRows<Plan::kPairsRows>;
  using Source = FragmentSource<Plan, Epilogue>;
  static constexpr int kLaneRows = Rows::kLaneRows;
  static constexpr int kOtherRow = Rows::kOtherRow;
  static constexpr bool kPairsAreLines = Plan::kPairsRows && !Plan::kDIsRowMajor;

 public:
  static constexpr int kBytes = Plan::kOutputBuffers * kBufferBytes;  // of shared memory, for each warpgroup

  /// `buffers` is the shared address of kBytes, `barrier` a named barrier of this warpgroup alone.
  __device__ __forceinline__ WarpgroupOutput(const Parameters& parameters, uint32_t buffers, int thread, int barrier)
      : parameters_(parameters), buffers_(buffers), thread_(thread), barrier_(barrier) {}

  /// Stores 64 rows from `row` on and kTileN columns.
  template <class Accumulators>
  __device__ __forceinline__ void store(const Accumulators& accumulators, int row, int column, int batch) {
    const Source source(parameters_, row + Rows::row(thread_), column + Rows::column(thread_), batch);
#pragma unroll
    for (int first = 0; first < kChunks; first += Plan::kBufferChunks) {
      const int chunks = minimum(Plan::kBufferChunks, kChunks - first);
      const uint32_t buffer = buffers_ + buffer_ * kBufferBytes;
      buffer_ = buffer_ + 1 == Plan::kOutputBuffers ? 0 : buffer_ + 1;
      if constexpr (kByTma) {
        if (thread_ == 0) ptx::tma_store_wait_read<Plan::kOutputBuffers - 1>();
      }
      ptx::named_barrier(barrier_, kThreads);
#pragma unroll
      for (int i = 0; i < chunks; ++i) stage(accumulators, first + i, buffer + i * Chunk::kBytes, source);
      if constexpr (kByTma) ptx::fence_proxy_async();
      ptx::named_barrier(barrier_, kThreads);
      if (kByTma && thread_ != 0) continue;
#pragma unroll
      for (int i = 0; i < chunks; ++i) {
        send(buffer + i * Chunk::kBytes, row, column + (first + i) * Plan::kChunkColumns, batch);
      }
      if constexpr (kByTma) ptx::tma_store_commit();
    }
  }

  /// Before the CTA ends: the stores have read shared memory.
  __device__ __forceinline__ void finish() const {
    if constexpr (kByTma) {
      if (thread_ == 0) ptx::tma_store_wait_read<0>();
    }
  }

 private:
  /// Groups of 8 columns that are stored together: stmatrix.x4 takes two.
  static constexpr bool kByMatrices = sizeof(D) == 2 && !kPairsAreLines;
  static constexpr int kGroups = kByMatrices && Plan::kChunkColumns % 16 == 0 ? 2 : 1;
  static_assert(Plan::kChunkColumns % (8 * kGroups) == 0, "a chunk is whole stores");

  template <class Accumulators>
  __device__ __forceinline__ void stage(const Accumulators& accumulators, int chunk, uint32_t buffer,
                                        const Source& source) const {
    const int warp_row = thread_ / 32 * 16;
#pragma unroll
    for (int group = 0; group < Plan::kChunkColumns / 8; group += kGroups) {
      const int first = (chunk * Plan::kChunkColumns / 8 + group) * 4;
      Compute read[4 * kGroups];
      source.load(read, chunk * Plan::kChunkColumns + group * 8);
      Vector<D, 2> out[2 * kGroups];
#pragma unroll
      for (int i = 0; i < 2 * kGroups; ++i) {
        Compute pair[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int at = 2 * i + j;
          pair[j] =
              Epilogue::apply(convert<Compute>(element(accumulators, first + at)), read[at], parameters_.epilogue);
        }
        out[i] = convert_pair<D>(pair[0], pair[1]);
      }
      if constexpr (kByMatrices) {
        store_matrices(out, buffer, warp_row, group * 8);
      } else {
        store_pairs(out, buffer, Rows::row(thread_), group * 8 + Rows::column(thread_));
      }
    }
  }

  /// 16-bit elements. Lane l addresses line l%8 of matrix l/8: the matrices are the lanes' first rows and their others
  /// of one group of columns, then of the next.
  __device__ __forceinline__ void store_matrices(const Vector<D, 2> (&out)[2 * kGroups], uint32_t buffer, int warp_row,
                                                 int column) const {
    const int line = thread_ % 8;
    const int matrix = thread_ % 32 / 8 % (2 * kGroups);
    const int matrix_row = warp_row + matrix % 2 * kOtherRow;
    const int matrix_column = column + matrix / 2 * 8;
    const uint32_t to = buffer + (Plan::kDIsRowMajor ? Chunk::offset(matrix_row + line * kLaneRows, matrix_column)
                                                     : Chunk::offset(matrix_row, matrix_column + line));
    uint32_t packed[2 * kGroups];
#pragma unroll
    for (int i = 0; i < 2 * kGroups; ++i) packed[i] = __builtin_bit_cast(uint32_t, out[i]);
    if constexpr (kGroups == 2) {
      ptx::stmatrix_x4<!Plan::kDIsRowMajor>(to, packed);
    } else {
      ptx::stmatrix_x2<!Plan::kDIsRowMajor>(to, packed);
    }
  }

  /// Of other widths: neighbours at `row`, and at the thread's other row.
  __device__ __forceinline__ void store_pairs(const Vector<D, 2> (&out)[2], uint32_t buffer, int row,
                                              int column) const {
    if constexpr (kPairsAreLines) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        ptx::store_shared(buffer + Chunk::offset(row, column + i), Vector<D, 2>{out[0].element[i], out[1].element[i]});
      }
      return;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (Plan::kDIsRowMajor) {
        ptx::store_shared(buffer + Chunk::offset(row + half * kOtherRow, column), out[half]);
      } else {
        ptx::store_shared(buffer + Chunk::offset(row + half * kOtherRow, column), out[half].element[0]);
        ptx::store_shared(buffer + Chunk::offset(row + half * kOtherRow, column + 1), out[half].element[1]);
      }
    }
  }

  /// A staged chunk to D, by TMA by one thread; what lies outside D is not written.
  __device__ __forceinline__ void send(uint32_t buffer, int row, int column, int batch) const {
    const int contiguous = Plan::kDIsRowMajor ? column : row;
    const int strided = Plan::kDIsRowMajor ? row : column;
    if constexpr (kByTma) {
#pragma unroll
      for (int box = 0; box < Chunk::kBoxes; ++box) {
        ptx::tma_store(parameters_.d, buffer + box * Chunk::kBoxBytes, contiguous + box * Chunk::kLine, strided, batch);
      }
    } else {
      copy(buffer, contiguous, strided, batch);
    }
  }

  __device__ __forceinline__ void copy(uint32_t buffer, int contiguous, int strided, int batch) const {
    constexpr int kCount = Plan::kStoreBytes / static_cast<int>(sizeof(D));
    constexpr int kPerLine = Chunk::kLine / kCount;
    using Stored = Vector<D, kCount>;
    const int end_contiguous = Plan::kDIsRowMajor ? parameters_.n : parameters_.m;
    const int end_strided = Plan::kDIsRowMajor ? parameters_.m : parameters_.n;
    D* const d = static_cast<D*>(const_cast<void*>(parameters_.d.address)) + batch * parameters_.d.batch_stride;
#pragma unroll 4
    for (int i = thread_; i < Chunk::kBoxes * Chunk::kLines * kPerLine; i += kThreads) {
      const int line = i / kPerLine % Chunk::kLines;
      const int box = i / kPerLine / Chunk::kLines;
      const int along = i % kPerLine * kCount;
      const Stored values = ptx::load_shared<Stored>(buffer + box * Chunk::kBoxBytes + Chunk::line_offset(line, along));
      const int x = contiguous + box * Chunk::kLine + along;
      const int y = strided + line;
      if (y >= end_strided) continue;
      D* const at = d + y * parameters_.d.ld + x;
      if (x + kCount <= end_contiguous) {
        *reinterpret_cast<Stored*>(at) = values;
      } else {
#pragma unroll
        for (int j = 0; j < kCount - 1; ++j) {
          if (x + j < end_contiguous) at[j] = values.element[j];
        }
      }
    }
  }

  /// One accumulator; those of f16 are two to a register.
  template <class Accumulators>
  static __device__ __forceinline__ auto element(const Accumulators& accumulators, int i) {
    if constexpr (Plan::kAccumulatesInHalf) {
      return half_t{static_cast<uint16_t>(accumulators[i / 2] >> (i % 2 * 16))};
    } else {
      return accumulators[i];
    }
  }

  const Parameters& parameters_;
  uint32_t buffers_;
  int thread_;
  int barrier_;
  int buffer_ = 0;
};

}  // namespace tilewright
