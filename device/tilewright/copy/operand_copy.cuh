// The operand path with cp.async: copies one operand's tile from global to swizzled shared memory, with zeros outside
// the matrix.
//
// A tile consists of `kStrided` lines of `kContiguous` elements. A K-major operand's lines run along K, an MN-major
// one's along M or N. In shared memory the tile is cut into panels, each with `kPanelBytes` of every line; panels
// follow each other, and within a panel lines do.
#pragma once

#include "tilewright/operand/swizzle.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Operand: Element, Swizzle, kIsKMajor, kStrided, kContiguous, kPanelBytes, kAlignmentBytes, kTileBytes.
template <class Operand, int kThreads>
class OperandCopy {
  using Element = typename Operand::Element;
  static constexpr int kElementBytes = sizeof(Element);
  static constexpr int kVectorBytes = Operand::kAlignmentBytes;
  static constexpr int kVectorsPerLine = Operand::kPanelBytes / kVectorBytes;  // in one panel
  static constexpr int kPanels = Operand::kContiguous * kElementBytes / Operand::kPanelBytes;
  static constexpr int kLines = Operand::kStrided * kPanels;
  static constexpr int kLinesPerPass = kThreads / kVectorsPerLine;
  static constexpr int kPasses = ceil_div(kLines, kLinesPerPass);
  static constexpr bool kIsPartialPass = kLines < kLinesPerPass;
  static_assert(kThreads % kVectorsPerLine == 0, "a pass covers whole lines");
  static_assert(kIsPartialPass || kLines % kLinesPerPass == 0, "passes cover the tile");
  static_assert(Operand::kStrided % kLinesPerPass == 0 || kLinesPerPass % Operand::kStrided == 0,
                "a pass covers whole panels or divides one");

  // The line and the panel at which pass p begins, relative to pass 0; the same for every thread.
  static constexpr __device__ int pass_line(int pass) { return pass * kLinesPerPass % Operand::kStrided; }
  static constexpr __device__ int pass_panel(int pass) { return pass * kLinesPerPass / Operand::kStrided; }

  /// The pass's offset in shared memory is split into a part that is joined by exclusive or and a part that is added.
  /// Each low bit of the line comes from the thread or from the pass, never from both, so the swizzle of the two is the
  /// exclusive or of their swizzles. A pass that moves by whole periods of the swizzle has no part for the exclusive
  /// or.
  static constexpr __device__ uint32_t pass_xor(int pass) {
    const uint32_t linear = pass_line(pass) * Operand::kPanelBytes;
    return swizzled<typename Operand::Swizzle>(linear) ^ linear;
  }
  static constexpr __device__ uint32_t pass_add(int pass) {
    return (pass_line(pass) + pass_panel(pass) * Operand::kStrided) * Operand::kPanelBytes;
  }

 public:
  /// The matrix begins `offset` elements behind `operand` and has leading dimension `ld`. `mn` is the first row or
  /// column of the tile, `mn_extent` the matrix's extent along the same mode.
  __device__ __forceinline__ OperandCopy(const void* operand, int64_t offset, int64_t ld, int mn, int mn_extent,
                                         int thread)
      : ld_bytes_(ld * kElementBytes), mn_left_(mn_extent - mn) {
    const int line = thread / kVectorsPerLine;
    line_ = line % Operand::kStrided;
    const int panel = line / Operand::kStrided;
    const int vector_byte = thread % kVectorsPerLine * kVectorBytes;
    is_active_ = !kIsPartialPass || line < kLines;
    contiguous_byte_ = panel * Operand::kPanelBytes + vector_byte;
    const int64_t origin =
        offset * kElementBytes + (Operand::kIsKMajor ? mn * ld_bytes_ : static_cast<int64_t>(mn) * kElementBytes);
    global_ = static_cast<const char*>(operand) + origin + line_ * ld_bytes_ + contiguous_byte_;
    shared_ = panel * Operand::kStrided * Operand::kPanelBytes +
              swizzled<typename Operand::Swizzle>(line_ * Operand::kPanelBytes + vector_byte);
    pass_bytes_ = Operand::kStrided > kLinesPerPass ? kLinesPerPass * ld_bytes_ : 0;
  }

  /// Issues part `kShare` of `kShares` of the copy of the next tile along K to `tile`, a shared address. `k_left`
  /// elements of K are left; what lies behind them becomes zero, which is everything where k_left is not positive.
  /// There are no branches, so that the compiler can interleave the copies with the instructions that multiply.
  template <int kShare, int kShares>
  __device__ __forceinline__ void start(uint32_t tile, int k_left) const {
    constexpr int kFirst = kPasses * kShare / kShares, kEnd = kPasses * (kShare + 1) / kShares;
    const int lines_left = (Operand::kIsKMajor ? mn_left_ : k_left) - line_;
    const int bytes_left =
        minimum(Operand::kIsKMajor ? k_left : mn_left_, Operand::kContiguous) * kElementBytes - contiguous_byte_;
#pragma unroll
    for (int pass = kFirst; pass < kEnd; ++pass) {
      const uint32_t to = tile + (shared_ ^ pass_xor(pass)) + pass_add(pass);
      const char* const from =
          global_ + pass_line(pass) / kLinesPerPass * pass_bytes_ + pass_panel(pass) * Operand::kPanelBytes;
      const int bytes_of_line = min(max(bytes_left - pass_panel(pass) * Operand::kPanelBytes, 0), kVectorBytes);
      const int valid_bytes = pass_line(pass) < lines_left ? bytes_of_line : 0;
      if (is_active_) ptx::cp_async_zfill<kVectorBytes>(to, from, valid_bytes);
    }
  }

  /// Moves to the next tile, kTileK elements further along K.
  template <int kTileK>
  __device__ __forceinline__ void advance() {
    global_ += Operand::kIsKMajor ? static_cast<int64_t>(kTileK * kElementBytes) : kTileK * ld_bytes_;
  }

 private:
  const char* global_;  // this thread's first vector in the next tile
  int64_t ld_bytes_;
  int64_t pass_bytes_;   // from the lines of one pass to those of the next
  int mn_left_;          // rows or columns from the tile's origin to the matrix's end
  int line_;             // this thread's line in pass 0
  int contiguous_byte_;  // this thread's byte within a line
  uint32_t shared_;      // this thread's swizzled offset within a tile
  bool is_active_;
};

}  // namespace tilewright
