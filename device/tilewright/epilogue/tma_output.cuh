// Outputs other than D that TMA stores. They use the same shared-memory buffers as D, after D's part of the buffer.
#pragma once

#include "tilewright/epilogue/output_panel.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// One of these outputs, number kNumberOfAll, which is 0 or 1. kBytesOfFirst is the size of an element of number 0 for
/// number 1, and 0 for number 0. LayoutOfPanel has the members that OutputPanel uses.
template <int kNumberOfAll, class ElementOfTensor, int kBytesOfFirst, class LayoutOfPanel>
struct TmaOutput {
  static_assert(kNumberOfAll == 0 || kNumberOfAll == 1);
  static constexpr int kNumber = kNumberOfAll, kElementBytesBefore = kBytesOfFirst;
  using Element = ElementOfTensor;
  using Layout = LayoutOfPanel;
};

/// Plan: kDIsRowMajor, which is the order of these outputs too, kPanelColumns, kSubtilePanels.
template <class Plan>
struct TmaOutputBuffer {
  template <class Output>
  using Panel = OutputPanel<typename Output::Element, typename Output::Layout, Plan::kDIsRowMajor>;
  static constexpr int kElements = Plan::kSubtilePanels * 64 * Plan::kPanelColumns;
  /// The bytes of a part of the buffer. The next part may have panels with a swizzle of 128 bytes, which must begin at
  /// a multiple of 1024.
  static __device__ constexpr int part(int bytes) { return ceil_div(bytes, 1024) * 1024; }

  /// Stores two adjacent values of a row of the subtile to the buffer.
  template <class Output, class Compute>
  static __device__ __forceinline__ void store(uint32_t buffer, int row, int column, const Compute (&values)[2]) {
    using Element = typename Output::Element;
    const Vector<Element, 2> pair = convert_pair<Element>(values[0], values[1]);
    const uint32_t panel = first<Output>(buffer) + column / Plan::kPanelColumns * Panel<Output>::kBytes;
    const int in_panel = column % Plan::kPanelColumns;
    if constexpr (Plan::kDIsRowMajor) {
      ptx::store_shared(panel + Panel<Output>::offset(row, in_panel), pair);
    } else {
      ptx::store_shared(panel + Panel<Output>::offset(row, in_panel), pair.element[0]);
      ptx::store_shared(panel + Panel<Output>::offset(row, in_panel + 1), pair.element[1]);
    }
  }

  /// Must be called by one thread: issues the TMA stores of kPanels panels, the first of them at (row, column) of the
  /// matrix.
  template <class Output, int kPanels>
  static __device__ __forceinline__ void send(const TmaMatrix& to, uint32_t buffer, int row, int column, int batch) {
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel, column += Plan::kPanelColumns) {
#pragma unroll
      for (int box = 0; box < Panel<Output>::kBoxes; ++box) {
        ptx::tma_store(to, first<Output>(buffer) + panel * Panel<Output>::kBytes + box * Panel<Output>::kBoxBytes,
                       (Plan::kDIsRowMajor ? column : row) + box * Panel<Output>::kLine,
                       Plan::kDIsRowMajor ? row : column, batch);
      }
    }
  }

 private:
  template <class Output>
  static __device__ __forceinline__ uint32_t first(uint32_t buffer) {
    return buffer + part(kElements * Output::kElementBytesBefore);
  }
};

}  // namespace tilewright
