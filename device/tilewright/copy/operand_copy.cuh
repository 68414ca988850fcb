// The operand path with cp.async: copies one operand's tile from global to swizzled shared memory, with zeros outside
// the matrix. An operand that is aligned to less than 4 bytes, which is the least that cp.async moves, is copied
// element by element through registers.
//
// A tile consists of lines of `kContiguous` elements. A K-major operand's lines run along K, an MN-major one's along M
// or N.
#pragma once

#include "tilewright/copy/gathered_vectors.cuh"
#include "tilewright/operand/matrix_layout.cuh"
#include "tilewright/operand/matrix_parameters.cuh"
#include "tilewright/operand/swizzle.cuh"
#include "tilewright/ptx/cp_async.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// The elements of a thread on their way through registers, one for each of kPasses passes; each has kBytes bytes. They
/// are loaded when the copy of a tile begins and stored when it ends, so that the instructions that multiply in between
/// hide the latency of the loads.
template <int kBytes, int kPasses>
class ElementsOnTheirWay {
  static_assert(kBytes == 1 || kBytes == 2, "cp.async moves wider elements");

 public:
  __device__ __forceinline__ void load(int pass, const void* from, bool is_inside) {
    values_[pass] = 0;
    if constexpr (kBytes == 1) {
      ptx::load_global_b8_if(is_inside, values_[pass], from);
    } else {
      ptx::load_global_b16_if(is_inside, values_[pass], from);
    }
  }
  __device__ __forceinline__ void store(int pass, uint32_t to) const {
    ptx::store_shared(to, static_cast<Select<kBytes == 1, uint8_t, uint16_t>>(values_[pass]));
  }

 private:
  uint16_t values_[kPasses];
};

/// What OperandCopy keeps if it uses cp.async.
struct NothingOnItsWay {};

/// Whether cp.async copies the vectors of an operand.
template <class Operand>
inline constexpr bool kIsCopiedAsync = Operand::kAlignmentBytes >= 4;

template <class Operand>
using OnTheirWay = Select<kIsCopiedAsync<Operand>, NothingOnItsWay,
                          ElementsOnTheirWay<minimum(Operand::kAlignmentBytes, 2), Operand::Copy::kPasses>>;

/// Operand: Element, Matrix (StridedMatrix, Im2colMatrix or FoldedMatrix), kIsKMajor, kIsInterleaved (then passes and
/// tiles begin at blocks of K), kContiguous, kAlignmentBytes (of a vector; 1 or 2: of a single element), kSwizzledBits,
/// and Copy: kPasses, kActiveThreads, kLineStep, the coordinates line(thread), element(thread), pass_line(pass),
/// pass_element(pass), and the places in bytes place(thread) and pass_place(pass). A thread's coordinate in a pass, and
/// its place, are the sums of the two; see plan::TileCopy.
template <class Operand, int kThreads, bool kIsStrided = is_same<typename Operand::Matrix, StridedMatrix>>
class OperandCopy {
  using Element = typename Operand::Element;
  using Copy = typename Operand::Copy;
  static constexpr int kElementBytes = sizeof(Element);
  static constexpr int kVectorBytes = Operand::kAlignmentBytes;
  static constexpr int kPasses = Copy::kPasses;
  /// Whether the tile is so narrow that it may cover the whole matrix along M or N. The matrix's lines then follow each
  /// other in memory, and all CTAs read them at the same time from one or two slices of L2: 916 CTAs that copied lines
  /// of 16 bytes took 15.1 us, and 6.5 us through L1, which the CTAs of an SM share (f16 8x29280x96, H200, 2026-11-26).
  /// L1 costs 5 to 30 % for lines that no other CTA of the SM reads.
  static constexpr int kNarrowBytes = 64;
  static constexpr bool kIsNarrow =
      !Operand::kIsKMajor && kVectorBytes == 16 && Operand::kContiguous * kElementBytes <= kNarrowBytes;

 public:
  /// The matrix has leading dimension `ld`. `begin_k` is where the first tile begins, `mn` the first row or column of
  /// the tiles, `mn_extent` the matrix's extent along the same mode.
  __device__ __forceinline__ OperandCopy(const Element* matrix, int64_t ld, const StridedMatrix& /*reach*/, int begin_k,
                                         int mn, int mn_extent, int thread)
      : ld_(ld), mn_left_(mn_extent - mn), keeps_in_l1_(kIsNarrow && mn_extent <= Operand::kContiguous) {
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
  /// There are no branches, so that the compiler can interleave the copies with the instructions that multiply. The
  /// first part loads all elements that go through registers.
  template <int kShare, int kShares>
  __device__ __forceinline__ void start(uint32_t tile, int k_left) {
    constexpr bool kIsAsync = kIsCopiedAsync<Operand>;
    constexpr int kFirst = kIsAsync ? kPasses * kShare / kShares : 0;
    constexpr int kEnd = kIsAsync ? kPasses * (kShare + 1) / kShares : kShare == 0 ? kPasses : 0;
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
      if constexpr (kIsAsync) {
        copy(to, from, valid_bytes);
      } else {
        on_their_way_.load(pass, from, is_active_ && valid_bytes != 0);
      }
    }
  }

  /// Stores the elements that start() has loaded to the same tile. With cp.async it does nothing.
  __device__ __forceinline__ void finish(uint32_t tile) const {
    if constexpr (!kIsCopiedAsync<Operand>) {
      if (!is_active_) return;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass)
        on_their_way_.store(pass, tile + moved<Operand::kSwizzledBits>(shared_, Copy::pass_place(pass)));
    }
  }

  /// Moves to the next tile, kTileK elements further along K.
  template <int kTileK>
  __device__ __forceinline__ void advance() {
    static_assert(!Operand::kIsInterleaved || kTileK % kInterleaved == 0, "a tile begins with a block");
    global_ += along_k<Operand>(kTileK, ld_) * kElementBytes;
  }

 private:
  /// The two copies are predicated, as start() has no branches.
  __device__ __forceinline__ void copy(uint32_t to, const char* from, int valid_bytes) const {
    if (is_active_ && !keeps_in_l1_) ptx::cp_async_zfill<kVectorBytes>(to, from, valid_bytes);
    if constexpr (kIsNarrow) {
      if (is_active_ && keeps_in_l1_) ptx::cp_async_zfill<kVectorBytes, true>(to, from, valid_bytes);
    }
  }

  const char* global_;  // this thread's first vector in the next tile
  int64_t ld_;
  int64_t step_bytes_;   // of Copy::kLineStep lines
  int mn_left_;          // rows or columns from the tile's origin to the matrix's end
  int line_;             // this thread's line in pass 0
  int contiguous_byte_;  // this thread's byte within a line
  uint32_t shared_;      // this thread's swizzled offset within a tile
  bool is_active_;
  bool keeps_in_l1_;  // the copies go through L1
  [[no_unique_address]] OnTheirWay<Operand> on_their_way_;
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
  __device__ __forceinline__ void start(uint32_t tile, int k_left) {
    constexpr bool kIsAsync = kIsCopiedAsync<Operand>;
    constexpr int kFirst = kIsAsync ? kPasses * kShare / kShares : 0;
    constexpr int kEnd = kIsAsync ? kPasses * (kShare + 1) / kShares : kShare == 0 ? kPasses : 0;
#pragma unroll
    for (int pass = kFirst; pass < kEnd; ++pass) {
      const uint32_t to = tile + moved<Operand::kSwizzledBits>(shared_, Copy::pass_place(pass));
      const auto [from, count] = vectors_.source(pass, k_left);
      if constexpr (kIsAsync) {
        if (is_active_) ptx::cp_async_zfill<kVectorBytes>(to, from, count * kElementBytes);
      } else {
        on_their_way_.load(pass, from, is_active_ && count != 0);
      }
    }
  }

  __device__ __forceinline__ void finish(uint32_t tile) const {
    if constexpr (!kIsCopiedAsync<Operand>) {
      if (!is_active_) return;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass)
        on_their_way_.store(pass, tile + moved<Operand::kSwizzledBits>(shared_, Copy::pass_place(pass)));
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
  [[no_unique_address]] OnTheirWay<Operand> on_their_way_;
};

}  // namespace tilewright
