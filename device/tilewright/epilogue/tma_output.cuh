// Outputs beside D that leave a warpgroup as D does: by TMA, from the same buffers of shared memory, behind D's chunks.
#pragma once

#include "tilewright/epilogue/output_chunk.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Number kNumber of them; elements of those before have kBytesBefore bytes together.
template <int kNumberOfAll, class ElementOfTensor, int kBytesOfThoseBefore>
struct TmaOutput {
  static constexpr int kNumber = kNumberOfAll, kBytesBefore = kBytesOfThoseBefore;
  using Element = ElementOfTensor;
};

/// Plan: kDIsRowMajor, which holds for all of them, kChunkColumns, kBufferChunks.
template <class Plan>
struct TmaOutputBuffer {
  template <class Output>
  using Chunk = OutputChunk<typename Output::Element, Plan::kDIsRowMajor, Plan::kChunkColumns>;
  static constexpr int kElements = Plan::kBufferChunks * 64 * Plan::kChunkColumns;

  /// Two neighbours in a row of what the buffer holds.
  template <class Output, class Compute>
  static __device__ __forceinline__ void store(uint32_t buffer, int row, int column, const Compute (&values)[2]) {
    using Element = typename Output::Element;
    const Vector<Element, 2> pair = convert_pair<Element>(values[0], values[1]);
    const uint32_t chunk = first<Output>(buffer) + column / Plan::kChunkColumns * Chunk<Output>::kBytes;
    const int in_chunk = column % Plan::kChunkColumns;
    if constexpr (Plan::kDIsRowMajor) {
      ptx::store_shared(chunk + Chunk<Output>::offset(row, in_chunk), pair);
    } else {
      ptx::store_shared(chunk + Chunk<Output>::offset(row, in_chunk), pair.element[0]);
      ptx::store_shared(chunk + Chunk<Output>::offset(row, in_chunk + 1), pair.element[1]);
    }
  }

  /// By one thread: kChunks chunks, the first at (row, column) of the matrix.
  template <class Output, int kChunks>
  static __device__ __forceinline__ void send(const TmaMatrix& to, uint32_t buffer, int row, int column, int batch) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk, column += Plan::kChunkColumns) {
#pragma unroll
      for (int box = 0; box < Chunk<Output>::kBoxes; ++box) {
        ptx::tma_store(to, first<Output>(buffer) + chunk * Chunk<Output>::kBytes + box * Chunk<Output>::kBoxBytes,
                       (Plan::kDIsRowMajor ? column : row) + box * Chunk<Output>::kLine,
                       Plan::kDIsRowMajor ? row : column, batch);
      }
    }
  }

 private:
  template <class Output>
  static __device__ __forceinline__ uint32_t first(uint32_t buffer) {
    return buffer + kElements * Output::kBytesBefore;
  }
};

}  // namespace tilewright
