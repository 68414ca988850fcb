// How a chunk of D, or of C, lies in shared memory on its way: as boxes of TMA, swizzled.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// 64 rows of kColumns columns. A line is what lies together in the matrix: a row, or up to 128 bytes of a column.
template <class Element, bool kIsRowMajor, int kColumns>
class OutputChunk {
  static constexpr int kRows = 64;
  static constexpr int kElementBytes = static_cast<int>(sizeof(Element));

 public:
  static constexpr int kLine = kIsRowMajor ? kColumns : minimum(kRows, 128 / kElementBytes);  // elements
  static constexpr int kLines = kIsRowMajor ? kRows : kColumns;
  static constexpr int kBoxes = kIsRowMajor ? 1 : kRows / kLine;
  static constexpr int kLineBytes = kLine * kElementBytes;
  static constexpr int kBoxBytes = kLines * kLineBytes;
  static constexpr int kBytes = kBoxes * kBoxBytes;
  static_assert(kLineBytes == 128 || kLineBytes == 64 || kLineBytes == 32 || kLineBytes == 16, "a swizzle's width");

  /// From the box's first byte to element `along` of a line: 16-byte units are exclusive-ored with the line's number,
  /// as far as 128 bytes repeat.
  static __device__ __forceinline__ uint32_t line_offset(int line, int along) {
    constexpr int kMask = kLineBytes / 16 - 1;
    constexpr int kLinesPer128 = 128 / kLineBytes;
    return line * kLineBytes + (along * kElementBytes ^ ((line / kLinesPer128 & kMask) * 16));
  }

  static __device__ __forceinline__ uint32_t offset(int row, int column) {
    if constexpr (kIsRowMajor) return line_offset(row, column);
    return row / kLine * kBoxBytes + line_offset(column, row % kLine);
  }

  /// Calls visit(offset, x, y) for this thread's share of all vectors of kCount elements, where the chunk's first
  /// element is element x of line y of the matrix.
  template <int kCount, int kThreads, class Visit>
  static __device__ __forceinline__ void for_each(int thread, int row, int column, const Visit& visit) {
    constexpr int kPerLine = kLine / kCount;
    const int first_x = kIsRowMajor ? column : row;
    const int first_y = kIsRowMajor ? row : column;
#pragma unroll 2
    for (int i = thread; i < kBoxes * kLines * kPerLine; i += kThreads) {
      const int line = i / kPerLine % kLines;
      const int box = i / kPerLine / kLines;
      const int along = i % kPerLine * kCount;
      visit(static_cast<uint32_t>(box * kBoxBytes) + line_offset(line, along), first_x + box * kLine + along,
            first_y + line);
    }
  }
};

}  // namespace tilewright
