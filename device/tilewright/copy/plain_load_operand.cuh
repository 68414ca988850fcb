// The operand path with plain loads (gather), for matrices whose alignment TMA does not support: the CTA's first 128
// threads copy one operand's tile from global to shared memory through registers. They store it in the swizzled layout
// that TMA would write and that wgmma's descriptors read.
//
// A line is contiguous in global memory. It runs along K for a K-major operand, along M or N for an MN-major one. In
// shared memory a tile consists of rows of kRowBytes, and each row is a part of one line. In one pass every thread
// moves kVectorBytes, and the 128 threads together move whole rows. If the matrix is aligned to less than 4 bytes, a
// thread loads the two words that its vector overlaps and combines them by a funnel shift.
#pragma once

#include "tilewright/operand/global_matrix.cuh"
#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/operand/tma_matrix.cuh"
#include "tilewright/ptx/convert.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/ptx/thread.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Operand: Source (GlobalMatrix), kIsPointerArray, kIsKMajor, kMn, kK (extents of the tile), kElementBytes,
/// kAlignmentBytes (of address, leading dimension and batch stride), kVectorBytes (4 or 8), kRowBytes, kRoundsToTf32,
/// and place(mn, k): the offset in elements from the tile's beginning in shared memory. place must be linear over whole
/// rows and over steps of 8 lines. The lines of one pass must be less than 2^31 bytes apart.
template <class Operand, bool kUsesPlainLoads = is_same<typename Operand::Source, GlobalMatrix>>
class PlainLoadOperand {
  static constexpr int kElementBytes = Operand::kElementBytes;
  static constexpr int kVectorBytes = Operand::kVectorBytes;
  static constexpr int kVectorElements = kVectorBytes / kElementBytes;
  static constexpr bool kShifts = Operand::kAlignmentBytes < kVectorBytes;
  static constexpr int kSlack = kShifts ? kVectorBytes - 1 : 0;  // limit on bytes read before and after a vector
  using Element = Select<kElementBytes == 1, uint8_t, Select<kElementBytes == 2, uint16_t, uint32_t>>;
  using Elements = Vector<Element, kVectorElements>;
  static constexpr int kContiguous = Operand::kIsKMajor ? Operand::kK : Operand::kMn;
  static constexpr int kLines = Operand::kIsKMajor ? Operand::kMn : Operand::kK;
  static constexpr int kRowElements = Operand::kRowBytes / kElementBytes;
  static constexpr int kPanels = kContiguous / kRowElements;  // rows that one line fills
  static constexpr int kThreads = 128;
  static constexpr int kThreadsPerRow = Operand::kRowBytes / kVectorBytes;
  static constexpr int kLinesPerPass = kThreads / kThreadsPerRow;
  static constexpr int kSwizzleLines = 8;
  static constexpr int kPeriod = maximum(1, kSwizzleLines / kLinesPerPass);  // steps after which the swizzle repeats
  static_assert(kLines % maximum(kLinesPerPass, kSwizzleLines) == 0, "passes cover the tile");
  static_assert(!kShifts || (kVectorBytes == 4 && kLinesPerPass % 4 == 0),
                "all vectors of a thread have the same offset within a word");

  // A pass is one panel of one step of kLinesPerPass lines.
  static constexpr __device__ int step_of(int pass) { return pass / kPanels; }
  static constexpr __device__ int panel_of(int pass) { return pass % kPanels; }

  static constexpr __device__ uint32_t place(int line, int element) {
    return kElementBytes * (Operand::kIsKMajor ? Operand::place(line, element) : Operand::place(element, line));
  }
  /// The offset of a pass relative to the thread's own offset in the same step of the swizzle's period.
  static constexpr __device__ uint32_t pass_place(int pass) {
    return place(step_of(pass) / kPeriod * kPeriod * kLinesPerPass, panel_of(pass) * kRowElements);
  }

 public:
  static constexpr int kPasses = kLines / kLinesPerPass * kPanels;
  static constexpr int kWords = kShifts || kVectorBytes == 8 ? 2 : 1;  // registers of a thread for one pass

  /// The addresses from which a thread loads its part of one tile.
  struct Tile {
    const char* at;      // the thread's first vector or, if vectors are shifted, the word in which it begins
    uint32_t last_step;  // the last step inside the matrix; later steps load the same line again
    uint32_t shift;      // bits from the beginning of the word to that of the vector
    bool touches_ends;   // loads of whole words would leave the matrix
  };

  __device__ __forceinline__ PlainLoadOperand(const GlobalMatrix& matrix, int mn_extent, int k_extent)
      : matrices_(matrix.address),
        ld_bytes_(matrix.ld * kElementBytes),
        batch_bytes_(matrix.batch_stride * kElementBytes),
        step_bytes_(static_cast<uint32_t>(kLinesPerPass * matrix.ld * kElementBytes)),
        lines_(Operand::kIsKMajor ? mn_extent : k_extent),
        contiguous_(Operand::kIsKMajor ? k_extent : mn_extent) {
#pragma unroll
    for (int i = 0; i < kPeriod; ++i) places_[i] = place(line() + i * kLinesPerPass, element());
  }

  /// The tile that begins at (mn, k) of matrix `batch`. mn and k must lie inside the matrix.
  __device__ __forceinline__ Tile locate(int mn, int k, int batch) const {
    const int first_line = Operand::kIsKMajor ? mn : k;
    const int first = Operand::kIsKMajor ? k : mn;
    const int last = minimum(lines_ - first_line, kLines) - 1;
    const int line = minimum(this->line(), last);
    const int64_t begin = first_line * ld_bytes_ + first * static_cast<int64_t>(kElementBytes);
    const char* const matrix = matrix_of_batch<Operand::kIsPointerArray, const char>(matrices_, batch_bytes_, batch);
    const int64_t end = begin + last * ld_bytes_ + kContiguous * kElementBytes;
    const int64_t extent = (lines_ - 1) * ld_bytes_ + contiguous_ * static_cast<int64_t>(kElementBytes);
    const bool begins_in_word = kShifts && begin < kSlack && misalignment(matrix) != 0;
    Tile tile;
    tile.touches_ends = begins_in_word || end + kSlack > extent;
    tile.at = matrix + begin + line * ld_bytes_ + element() * kElementBytes;
    tile.last_step = static_cast<uint32_t>(last - line) / kLinesPerPass;
    tile.shift = 0;
    if constexpr (kShifts) {
      if (!tile.touches_ends) {
        const uint32_t bytes = misalignment(tile.at);
        tile.at -= bytes;
        tile.shift = 8 * bytes;
      }
    }
    return tile;
  }

  /// Issues the loads of kCount passes from number `pass` on.
  template <int kCount, int kAllWords>
  __device__ __forceinline__ void load(uint32_t (&words)[kCount][kAllWords], const Tile& tile, int pass) const {
    if (tile.touches_ends) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const char* const at = address(tile, pass + i);
      if constexpr (kVectorBytes == 8) {
        ptx::load_global_v2_b32(words[i], at);
      } else {
        words[i][0] = ptx::load_global_b32(at);
        if constexpr (kShifts) ptx::load_global_b32_if(tile.shift != 0, words[i][1], at + 4);
      }
    }
  }

  /// Stores the elements that pass number `pass` loaded to the tile at the shared address `to`.
  template <int kAllWords>
  __device__ __forceinline__ void store(const uint32_t (&words)[kAllWords], uint32_t to, uint32_t shift,
                                        int pass) const {
    const uint32_t at = to + places_[step_of(pass) % kPeriod] + pass_place(pass);
    if constexpr (kVectorBytes == 8) {
      ptx::store_shared(at, Vector<uint32_t, 2>{{rounded(words[0]), rounded(words[1])}});
    } else if constexpr (kShifts) {
      ptx::store_shared(at, __funnelshift_r(words[0], words[1], shift));
    } else {
      ptx::store_shared(at, rounded(words[0]));
    }
  }

  /// Must be called once all passes of the tile at (mn, k) are stored. Stores zeros after the end of K. At the matrix's
  /// first and last bytes, where whole words would reach outside, it copies the tile element by element instead.
  __device__ __forceinline__ void finish(uint32_t to, const Tile& tile, int mn, int k) const {
    const int k_left = (Operand::kIsKMajor ? contiguous_ : lines_) - k;
    if (tile.touches_ends) {
      copy_elements(to, tile, contiguous_ - (Operand::kIsKMajor ? k : mn), k_left);
    } else if (k_left < Operand::kK) {
      clear_tail(to, k_left);
    }
  }

 private:
  /// Stores zeros after the end of K.
  __device__ __forceinline__ void clear_tail(uint32_t to, int k_left) const {
#pragma unroll 1
    for (int pass = 0; pass < kPasses; ++pass) {
      const int line = line_of(pass), element = element_of(pass);
      const int valid = Operand::kIsKMajor ? k_left - element : (line < k_left ? kVectorElements : 0);
      const uint32_t at = to + place(line, element);
      if (valid <= 0) {
        ptx::store_shared(at, Elements{});
      } else {
#pragma unroll
        for (int i = 1; i < kVectorElements; ++i) {
          if (i >= valid) ptx::store_shared(at + i * kElementBytes, Element{});
        }
      }
    }
  }

  /// Copies the whole tile element by element. The matrix's lines have `left` more elements from the tile's beginning
  /// on.
  __device__ __forceinline__ void copy_elements(uint32_t to, const Tile& tile, int left, int k_left) const {
    constexpr int kTogether = kPasses % 4 == 0 ? 4 : 1;
#pragma unroll 1
    for (int first = 0; first < kPasses; first += kTogether) {
      Elements vectors[kTogether] = {};
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int pass = first + i;
        const bool is_zero = !Operand::kIsKMajor && line_of(pass) >= k_left;
        const int valid = is_zero ? 0 : left - element_of(pass);
        const auto* const from = reinterpret_cast<const Element*>(address(tile, pass));
#pragma unroll
        for (int j = 0; j < kVectorElements; ++j) {
          if (j < valid) vectors[i].element[j] = from[j];
        }
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        auto words = __builtin_bit_cast(Vector<uint32_t, kVectorBytes / 4>, vectors[i]);
#pragma unroll
        for (int j = 0; j < kVectorBytes / 4; ++j) words.element[j] = rounded(words.element[j]);
        ptx::store_shared(to + place(line_of(first + i), element_of(first + i)), words);
      }
    }
  }

  static __device__ __forceinline__ uint32_t misalignment(const char* address) {
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(address)) % kVectorBytes;
  }

  __device__ __forceinline__ const char* address(const Tile& tile, int pass) const {
    const uint32_t step = min(static_cast<uint32_t>(step_of(pass)), tile.last_step);
    return tile.at + static_cast<uint64_t>(step) * step_bytes_ + panel_of(pass) * Operand::kRowBytes;
  }

  // The line of this thread's first vector in a tile. It is recomputed at each use to save registers, which hold the
  // words in flight.
  static __device__ __forceinline__ int line() { return ptx::thread() % kThreads / kThreadsPerRow; }
  static __device__ __forceinline__ int element() { return ptx::thread() % kThreadsPerRow * kVectorElements; }

  // The line and the element at which this thread's vector of a pass begins.
  __device__ __forceinline__ int line_of(int pass) const { return line() + step_of(pass) * kLinesPerPass; }
  __device__ __forceinline__ int element_of(int pass) const { return element() + panel_of(pass) * kRowElements; }

  static __device__ __forceinline__ uint32_t rounded(uint32_t word) {
    return Operand::kRoundsToTf32 ? ptx::round_to_tf32(word) : word;
  }

  const void* matrices_;  // see matrix_of_batch()
  int64_t ld_bytes_, batch_bytes_;
  uint32_t step_bytes_;       // from the lines of one step to those of the next, in global memory
  int lines_, contiguous_;    // extents of the matrix
  uint32_t places_[kPeriod];  // offsets in shared memory in the steps of one period
};

/// The empty specialization for an operand that TMA loads.
template <class Operand>
class PlainLoadOperand<Operand, false> {
 public:
  static constexpr int kPasses = 0, kWords = 1;
  struct Tile {
    uint32_t shift;
  };

  template <class Source>
  __device__ __forceinline__ PlainLoadOperand(const Source&, int, int) {}
  __device__ __forceinline__ Tile locate(int, int, int) const { return {}; }
  template <class Words>
  __device__ __forceinline__ void load(Words&, const Tile&, int) const {}
  template <class Words>
  __device__ __forceinline__ void store(const Words&, uint32_t, uint32_t, int) const {}
  __device__ __forceinline__ void finish(uint32_t, const Tile&, int, int) const {}
};

}  // namespace tilewright
