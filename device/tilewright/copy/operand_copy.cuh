// The operand path with cp.async: copies one operand's tile from global to swizzled shared memory, with zeros outside
// the matrix.
//
// A tile consists of lines of `kContiguous` elements. A K-major operand's lines run along K, an MN-major one's along M
// or N.
#pragma once

#include "tilewright/copy/gathered_vectors.cuh"
#include "tilewright/operand/matrix_layout.cuh"
#include "tilewright/operand/matrix_parameters.cuh"
#include "tilewright/operand/swizzle.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Operand: Element, Matrix (StridedMatrix, Im2colMatrix or FoldedMatrix), kIsKMajor, kIsInterleaved (then passes and
/// tiles begin at blocks of K), kContiguous, kAlignmentBytes (of a vector), kSwizzledBits, and Copy: kPasses,
/// kActiveThreads, kLineStep, the coordinates line(thread), element(thread), pass_line(pass), pass_element(pass), and
/// the places in bytes place(thread) and pass_place(pass). A thread's coordinate in a pass, and its place, are the sums
/// of the two; see plan::TileCopy.
template <class Operand, int kThreads, bool kIsStrided = is_same<typename Operand::Matrix, StridedMatrix>>
class OperandCopy {
  using Element = typename Operand::Element;
  using Copy = typename Operand::Copy;
  static constexpr int kElementBytes = sizeof(Element);
  static constexpr int kVectorBytes = Operand::kAlignmentBytes;
  static constexpr int kPasses = Copy::kPasses;

 public:
  /// The matrix has leading dimension `ld`. `begin_k` is where the first tile begins, `mn` the first row or column of
  /// the tiles, `mn_extent` the matrix's extent along the same mode.
  __device__ __forceinline__ OperandCopy(const Element* matrix, int64_t ld, const StridedMatrix& /*reach*/, int begin_k,
                                         int mn, int mn_extent, int thread)
      : ld_(ld), mn_left_(mn_extent - mn) {
    line_ = Copy::line(thread);
    contiguous_byte_ = Copy::element(thread) * kElementBytes;
    is_active_ = Copy::kActiveThreads == kThreads || thread < Copy::kActiveThreads;
    const int64_t stride = line_stride<Operand>(ld);
    const int64_t origin = Operand::kIsKMajor ? mn * stride : static_cast<int64_t>(mn);
    const int64_t element = Operand::kIsKMajor ? along_k<Operand>(Copy::element(thread), ld) : Copy::element(thread);
    matrix += along_k<Operand>(begin_k, ld);
    global_ = reinterpret_cast<const char*>(matrix) + (origin + line_ * stride + element) * kElementBytes;
    shared_ = Copy::place(thread);
    step_bytes_ = Copy::kLineStep * stride * kElementBytes;
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
      const uint32_t to = tile + moved<Operand::kSwizzledBits>(shared_, Copy::pass_place(pass));
      const int pass_byte = Copy::pass_element(pass) * kElementBytes;
      const char* const from =
          global_ + Copy::pass_line(pass) / Copy::kLineStep * step_bytes_ +
          (Operand::kIsInterleaved ? along_k<Operand>(Copy::pass_element(pass), ld_) * kElementBytes : pass_byte);
      const int bytes_of_line = min(max(bytes_left - pass_byte, 0), kVectorBytes);
      const int valid_bytes = Copy::pass_line(pass) < lines_left ? bytes_of_line : 0;
      if (is_active_) ptx::cp_async_zfill<kVectorBytes>(to, from, valid_bytes);
    }
  }

  /// Moves to the next tile, kTileK elements further along K.
  template <int kTileK>
  __device__ __forceinline__ void advance() {
    static_assert(!Operand::kIsInterleaved || kTileK % kInterleaved == 0, "a tile begins with a block");
    global_ += along_k<Operand>(kTileK, ld_) * kElementBytes;
  }

 private:
  const char* global_;  // this thread's first vector in the next tile
  int64_t ld_;
  int64_t step_bytes_;   // of Copy::kLineStep lines
  int mn_left_;          // rows or columns from the tile's origin to the matrix's end
  int line_;             // this thread's line in pass 0
  int contiguous_byte_;  // this thread's byte within a line
  uint32_t shared_;      // this thread's swizzled offset within a tile
  bool is_active_;
};

/// The same for a matrix that is not strided.
template <class Operand, int kThreads>
class OperandCopy<Operand, kThreads, false> {
  using Element = typename Operand::Element;
  using Matrix = typename Operand::Matrix;
  using Copy = typename Operand::Copy;
  static constexpr int kElementBytes = sizeof(Element);
  static constexpr int kVectorBytes = Operand::kAlignmentBytes;
  static constexpr int kPasses = Copy::kPasses;

 public:
  __device__ __forceinline__ OperandCopy(const Element* matrix_of_batch, int64_t /*ld*/, const Matrix& matrix,
                                         int begin_k, int mn, int mn_extent, int thread)
      : vectors_(matrix_of_batch, matrix, begin_k, mn, mn_extent, thread),
        shared_(Copy::place(thread)),
        is_active_(Copy::kActiveThreads == kThreads || thread < Copy::kActiveThreads) {}

  template <int kShare, int kShares>
  __device__ __forceinline__ void start(uint32_t tile, int k_left) const {
    constexpr int kFirst = kPasses * kShare / kShares, kEnd = kPasses * (kShare + 1) / kShares;
#pragma unroll
    for (int pass = kFirst; pass < kEnd; ++pass) {
      const uint32_t to = tile + moved<Operand::kSwizzledBits>(shared_, Copy::pass_place(pass));
      const auto [from, count] = vectors_.source(pass, k_left);
      if (is_active_) ptx::cp_async_zfill<kVectorBytes>(to, from, count * kElementBytes);
    }
  }

  template <int kTileK>
  __device__ __forceinline__ void advance() {
    vectors_.advance(kTileK);
  }

 private:
  GatheredVectors<Operand, kVectorBytes / kElementBytes> vectors_;
  uint32_t shared_;  // this thread's swizzled offset within a tile
  bool is_active_;
};

}  // namespace tilewright
