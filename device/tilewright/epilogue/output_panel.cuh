// A panel of an epilogue subtile in shared memory: 64 rows of D, C or another output, as wide as the swizzle, stored as
// TMA boxes.
#pragma once

#include "tilewright/epilogue/loads_in_flight.cuh"
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

  /// Fills this thread's share of the panel, which begins at (row, column) of the matrix, with vectors of kCount
  /// elements: calls store(offset, load(x, y)) with the vector from element x of line y of the matrix on.
  template <int kCount, int kThreads, class Load, class Store>
  static __device__ __forceinline__ void fill(int thread, int row, int column, const Load& load, const Store& store) {
    constexpr int kPerLine = kLine / kCount;
    const int first_x = kIsRowMajor ? column : row;
    const int first_y = kIsRowMajor ? row : column;
    const auto line = [](int i) { return i / kPerLine % kLines; };
    const auto along = [](int i) { return i / kPerLine / kLines * kLine + i % kPerLine * kCount; };
    copy_in_flight<kBoxes * kLines * kPerLine, kThreads, vectors_in_flight(kCount * kElementBytes)>(
        thread, [&](int i) { return load(first_x + along(i), first_y + line(i)); },
        [&](int i, const decltype(load(0, 0))& values) {
          store(kIsRowMajor ? offset(line(i), along(i)) : offset(along(i), line(i)), values);
        });
  }
};

}  // namespace tilewright
