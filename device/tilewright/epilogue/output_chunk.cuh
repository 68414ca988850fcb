// How a chunk of D lies in shared memory on its way out: as the boxes that TMA stores, swizzled.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// 64 rows of kColumns columns. A line is what lies together in D: a row, or up to 128 bytes of a column.
template <class D, bool kIsRowMajor, int kColumns>
class OutputChunk {
  static constexpr int kRows = 64;
  static constexpr int kElementBytes = static_cast<int>(sizeof(D));

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
};

}  // namespace tilewright
