// Loads C into the epilogue's shared-memory buffers, in the layout that D will have there. TMA loads C if its alignment
// allows and its storage order is that of D; otherwise plain loads do.
#pragma once

#include "tilewright/epilogue/loads_in_flight.cuh"
#include "tilewright/epilogue/output_panel.cuh"
#include "tilewright/epilogue/shifted_vector.cuh"
#include "tilewright/numeric/convert.cuh"
#include "tilewright/operand/global_matrix.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/ptx/mbarrier.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/tma.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The buffers of one warpgroup, which are used in turn: subtile number i uses buffer i % kBuffers.
/// Plan: ElementC, Source (TmaMatrix or GlobalMatrix), kCIsRowMajor, kCIsPointerArray, kDIsRowMajor, AccumulatorTile,
/// kPanelColumns, kSubtilePanels, kOutputBuffers, kSourceBytes (which divides the length of C's lines in bytes).
template <class Plan>
class SourceBuffers {
  using C = typename Plan::ElementC;
  using Panel = OutputPanel<C, typename Plan::PanelOfC, Plan::kDIsRowMajor>;
  using Rows = typename Plan::AccumulatorTile;
  static constexpr int kThreads = 128;

 public:
  static constexpr bool kByTma = is_same<typename Plan::Source, TmaMatrix>;
  static constexpr int kBuffers = Plan::kOutputBuffers;
  static constexpr int kPanelBytes = Panel::kBytes;
  static constexpr int kBufferBytes = Plan::kSubtilePanels * kPanelBytes;

  static __device__ __forceinline__ void initialise(uint32_t barriers) {
    for (int i = 0; i < kBuffers; ++i) ptx::mbarrier_init(barriers + i * ptx::kMbarrierBytes, 1);
  }

  /// `barriers` is the shared address of one mbarrier for each buffer.
  __device__ __forceinline__ explicit SourceBuffers(uint32_t barriers) : barriers_(barriers) {}

  /// Must be called by one thread: issues the loads of the panels at (row, column) to `buffer`, which must be free.
  __device__ __forceinline__ void request(const TmaMatrix& c, uint32_t use, uint32_t buffer, int row, int column,
                                          int batch) const {
    ptx::mbarrier_arrive_expect(full(use), kBufferBytes);
#pragma unroll
    for (int panel = 0; panel < Plan::kSubtilePanels; ++panel, column += Plan::kPanelColumns) {
#pragma unroll
      for (int box = 0; box < Panel::kBoxes; ++box) {
        ptx::tma_load(buffer + panel * kPanelBytes + box * Panel::kBoxBytes, c, full(use),
                      (Plan::kDIsRowMajor ? column : row) + box * Panel::kLine, Plan::kDIsRowMajor ? row : column,
                      batch, ptx::kEvictNormal);
      }
    }
  }
  __device__ __forceinline__ void wait(uint32_t use) const { ptx::mbarrier_wait(full(use), use / kBuffers % 2); }

  /// Must be called by all threads between barriers: copies the panels at (row, column) of C, which is m x n, with
  /// zeros outside it.
  __device__ __forceinline__ void copy(const GlobalMatrix& c, int m, int n, uint32_t buffer, int thread, int row,
                                       int column, int batch) const {
    const C* const from = matrix_of_batch<Plan::kCIsPointerArray, const C>(c.address, c.batch_stride, batch);
#pragma unroll 1
    for (int panel = 0; panel < Plan::kSubtilePanels; ++panel, column += Plan::kPanelColumns, buffer += kPanelBytes) {
      if constexpr (Plan::kCIsRowMajor == Plan::kDIsRowMajor) {
        copy_lines(from, c.ld, m, n, buffer, thread, row, column);
      } else {
        copy_elements(from, c.ld, m, n, buffer, thread, row, column);
      }
    }
  }

  /// The two adjacent elements of C at a thread's accumulators in the 8 columns from `column` on. They are in the
  /// thread's first row or, if `other` is 1, in its second row.
  __device__ __forceinline__ Vector<C, 2> read(uint32_t buffer, int thread, int column, int other) const {
    const uint32_t panel = buffer + column / Plan::kPanelColumns * kPanelBytes;
    const int row = Rows::row(thread) + other * Rows::kOtherRow;
    column = column % Plan::kPanelColumns + Rows::column(thread);
    if constexpr (Plan::kDIsRowMajor) {
      return ptx::load_shared<Vector<C, 2>>(panel + Panel::offset(row, column));
    } else {
      return {ptx::load_shared<Vector<C, 1>>(panel + Panel::offset(row, column)).element[0],
              ptx::load_shared<Vector<C, 1>>(panel + Panel::offset(row, column + 1)).element[0]};
    }
  }

 private:
  __device__ __forceinline__ void copy_lines(const C* from, int64_t ld, int m, int n, uint32_t panel, int thread,
                                             int row, int column) const {
    constexpr int kCount = 16 / static_cast<int>(sizeof(C));
    using Loaded = ShiftedVector<Plan::kSourceBytes, C>;
    const int end_x = Plan::kDIsRowMajor ? n : m;
    const int end_y = Plan::kDIsRowMajor ? m : n;
    Panel::template fill<kCount, kThreads>(
        thread, row, column, [&](int x, int y) { return y < end_y ? Loaded(from + y * ld, x, end_x) : Loaded(); },
        [&](uint32_t offset, const Loaded& loaded) { ptx::store_shared(panel + offset, loaded.words()); });
  }

  /// Copies C if its storage order differs from D's: the loads run along the contiguous mode of C.
  __device__ __forceinline__ void copy_elements(const C* from, int64_t ld, int m, int n, uint32_t panel, int thread,
                                                int row, int column) const {
    constexpr int kRows = 64;
    const auto in_row = [](int i) { return Plan::kCIsRowMajor ? i / Plan::kPanelColumns : i % kRows; };
    const auto in_column = [](int i) { return Plan::kCIsRowMajor ? i % Plan::kPanelColumns : i / kRows; };
    const auto load = [&](int i) {
      const int y = row + in_row(i), x = column + in_column(i);
      Vector<C, 1> value{};
      if (y < m && x < n) value.element[0] = from[Plan::kCIsRowMajor ? y * ld + x : y + x * ld];
      return value;
    };
    copy_in_flight<kRows * Plan::kPanelColumns, kThreads, vectors_in_flight(sizeof(C))>(
        thread, load, [&](int i, const Vector<C, 1>& value) {
          ptx::store_shared(panel + Panel::offset(in_row(i), in_column(i)), value);
        });
  }

  __device__ __forceinline__ uint32_t full(uint32_t use) const {
    return barriers_ + use % kBuffers * ptx::kMbarrierBytes;
  }

  uint32_t barriers_;
};

}  // namespace tilewright
