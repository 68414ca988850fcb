// A panel of an epilogue subtile in shared memory: 64 rows of D, C or another output, as wide as the swizzle, stored as
// TMA boxes.
#pragma once

#include "tilewright/types.cuh"

namespace tilewright {

/// Layout (from the plan): kLine is the number of elements that are contiguous in the matrix, which are a row of the
/// panel or, if the matrix is column-major, a part of a column. kLines is the number of lines per box, kBoxes that of
/// boxes. place(row, column) is the offset in bytes from the panel's beginning.
template <class Element, class Layout, bool kIsRowMajor>
class OutputPanel {
  static constexpr int kElementBytes = static_cast<int>(sizeof(Element));
  static constexpr int kLines = Layout::kLines;

 public:
  static constexpr int kLine = Layout::kLine, kBoxes = Layout::kBoxes;
  static constexpr int kBoxBytes = kLine * kLines * kElementBytes;
  static constexpr int kBytes = kBoxes * kBoxBytes;

  /// Bytes from the panel's beginning.
  static __device__ __forceinline__ uint32_t offset(int row, int column) {
    return Layout::place(static_cast<uint32_t>(row), static_cast<uint32_t>(column));
  }

  /// Calls visit(offset, x, y) for this thread's share of the panel's vectors of kCount elements: element x of line y
  /// of the matrix. The panel begins at (row, column) of the matrix.
  template <int kCount, int kThreads, class Visit>
  static __device__ __forceinline__ void for_each(int thread, int row, int column, const Visit& visit) {
    constexpr int kPerLine = kLine / kCount;
    const int first_x = kIsRowMajor ? column : row;
    const int first_y = kIsRowMajor ? row : column;
#pragma unroll 2
    for (int i = thread; i < kBoxes * kLines * kPerLine; i += kThreads) {
      const int line = i / kPerLine % kLines;
      const int along = i / kPerLine / kLines * kLine + i % kPerLine * kCount;
      visit(kIsRowMajor ? offset(line, along) : offset(along, line), first_x + along, first_y + line);
    }
  }
};

}  // namespace tilewright
