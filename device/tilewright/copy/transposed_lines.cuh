// Repacks an MN-major operand of 8-bit or 32-bit elements: transposes it to lines along K that begin at multiples of
// 128 bytes. wgmma reads operands of such elements K-major only.
#pragma once

#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/operand/repacked_matrix.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/ptx/permute.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Operand: Source, kIsPointerArray, kElementBytes (1 or 4), kAlignmentBytes (of address, leading dimension and batch
/// stride: 1 to 16).
///
/// A warp transposes blocks that are 32 words wide along M or N, one word for each thread, through shared memory. A
/// word of the result consists of 4 / kElementBytes elements along K, which come from as many lines of the matrix. If a
/// word of the matrix is not aligned, a thread loads the two words that it overlaps and combines them by a funnel
/// shift. Blocks at the matrix's edges, where a word may reach outside, are loaded element by element.
template <class Operand>
class TransposedLines {
  using Words = Vector<uint32_t, 4>;
  static constexpr int kElementBytes = Operand::kElementBytes;
  static constexpr int kPerWord = 4 / kElementBytes;
  static constexpr bool kShifts = Operand::kAlignmentBytes < 4;
  static_assert(kElementBytes == 1 || kElementBytes == 4, "wgmma reads 2-byte elements in both major modes");
  static constexpr int kMn = 32 * kPerWord;               // elements of a block
  static constexpr int kDepth = kPerWord == 1 ? 32 : 16;  // words of a block along K
  static constexpr int kK = kDepth * kPerWord;            // elements
  static constexpr int kRowBytes = 4 * (kDepth + 1);      // padded so that stores have no bank conflicts
  static constexpr int kTogether = 16 / kPerWord;         // words along K for which a thread has loads in flight
  static constexpr int kVectors = kDepth / 4;             // vectors of 16 bytes in a line of the block
  static constexpr int kLinesAtOnce = 32 / kVectors;

 public:
  static constexpr int kWarpBytes = kMn * kRowBytes;  // of shared memory

  /// Each of the `matrices` different matrices of the batch has `mn` x `k` elements. If K has pieces, each has a
  /// multiple of 16 bytes.
  __device__ __forceinline__ TransposedLines(const typename Operand::Source& matrix, char* workspace, int mn, int k,
                                             int matrices)
      : from_(matrix.from.address),
        to_(workspace + matrix.offset),
        ld_bytes_(matrix.from.ld * kElementBytes),
        batch_bytes_(matrix.from.batch_stride * kElementBytes),
        pitch_(matrix.pitch),
        to_step_(matrix.pieces > 1 ? int64_t{k / matrix.pieces} * kElementBytes : matrix.pitch * mn),
        mn_(mn),
        k_(matrix.pieces > 1 ? k / matrix.pieces : k),
        matrices_(static_cast<uint32_t>(matrix.pieces > 1 ? matrix.pieces : matrices)) {}

  /// Must be called by whole warps. This warp is number `warp` of the grid's `warps`; kWarpBytes of shared memory from
  /// `shared` on belong to it.
  __device__ __forceinline__ void copy(uint32_t shared, uint32_t warp, uint32_t warps) const {
    const auto along_mn = static_cast<uint32_t>(ceil_div(mn_, kMn));
    const auto along_k = static_cast<uint32_t>(ceil_div(k_, kK));
#pragma unroll 1
    for (uint32_t block = warp; block < along_mn * along_k * matrices_; block += warps) {
      const uint32_t row = block / along_mn;
      const uint32_t matrix = row / along_k;
      const int mn = static_cast<int>(block - row * along_mn) * kMn;
      const int k = static_cast<int>(row - matrix * along_k) * kK;
      const char* const begin = matrix_of_batch<Operand::kIsPointerArray, const char>(from_, batch_bytes_, matrix);
      if (is_inside(mn, k)) {
        read<true>(shared, begin, mn, k);
      } else {
        read<false>(shared, begin, mn, k);
      }
      __syncwarp();
      write(shared, to_ + matrix * to_step_, mn, k);
      __syncwarp();
    }
  }

 private:
  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x % 32); }

  /// Offset in shared memory of the line to which element `element` of the word that thread `lane` loaded belongs.
  static __device__ __forceinline__ uint32_t row(int element, int lane) { return (element * 32 + lane) * kRowBytes; }

  /// Whether the block at (mn, k), and one word before and one after each of its lines, are inside the matrix.
  __device__ __forceinline__ bool is_inside(int mn, int k) const {
    const bool has_word_before = !kShifts || mn > 0 || (k > 0 && ld_bytes_ >= 4);
    const bool has_word_behind = !kShifts || mn + kMn + 4 <= mn_ || (k + kK < k_ && ld_bytes_ >= 4);
    return mn + kMn <= mn_ && k + kK <= k_ && has_word_before && has_word_behind;
  }

  template <bool kIsInside>
  __device__ __forceinline__ void read(uint32_t shared, const char* matrix, int mn, int k) const {
    const int first = mn + lane() * kPerWord;
    const int left = mn_ - first;
    const char* at = matrix + k * ld_bytes_ + static_cast<int64_t>(first) * kElementBytes;
    uint32_t to = shared + row(0, lane());
#pragma unroll 1
    for (int depth = 0; depth < kDepth; depth += kTogether) {
      uint32_t low[kTogether][kPerWord], high[kTogether][kPerWord];
      const char* next = at;
#pragma unroll
      for (int i = 0; i < kTogether * kPerWord; ++i) {
        uint32_t& word = low[i / kPerWord][i % kPerWord];
        uint32_t& behind = high[i / kPerWord][i % kPerWord];
        if constexpr (kIsInside) {
          load(word, behind, next);
        } else {
          load_elements(word, behind, next, k + depth * kPerWord + i < k_ ? left : 0);
        }
        next += ld_bytes_;
      }
      next = at;
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        uint32_t words[kPerWord];
#pragma unroll
        for (int j = 0; j < kPerWord; ++j) {
          words[j] = kShifts ? __funnelshift_r(low[i][j], high[i][j], misalignment(next) * 8) : low[i][j];
          next += ld_bytes_;
        }
        transpose(words);
#pragma unroll
        for (int j = 0; j < kPerWord; ++j) ptx::store_shared(to + row(j, 0) + i * 4, words[j]);
      }
      at = next;
      to += kTogether * 4;
    }
  }

  static __device__ __forceinline__ uint32_t misalignment(const char* address) {
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(address)) % 4;
  }

  /// Loads the word at `at` or, where it may be misaligned, the two words that it overlaps.
  static __device__ __forceinline__ void load(uint32_t& low, uint32_t& high, const char* at) {
    const uint32_t before = kShifts ? misalignment(at) : 0;
    low = ptx::load_global_b32(at - before);
    if constexpr (kShifts) ptx::load_global_b32_if(before != 0, high, at - before + 4);
  }

  /// Loads the word of a line that has `left` more elements; elements after these are 0.
  static __device__ __forceinline__ void load_elements(uint32_t& low, uint32_t& high, const char* at, int left) {
    using Element = Select<kElementBytes == 1, uint8_t, uint32_t>;
    const auto* const from = reinterpret_cast<const Element*>(at);
    uint32_t word = 0;
#pragma unroll
    for (int i = 0; i < kPerWord; ++i) {
      if (i < left) word |= static_cast<uint32_t>(from[i]) << 8 * i;
    }
    low = word;
    if constexpr (kShifts) {  // the caller shifts the word back
      low = word << 8 * misalignment(at);
      high = __funnelshift_l(word, 0, 8 * misalignment(at));
    }
  }

  /// Transposes elements: word i becomes element i of all words.
  static __device__ __forceinline__ void transpose(uint32_t (&words)[kPerWord]) {
    if constexpr (kPerWord == 4) {
      const uint32_t low01 = ptx::permute_bytes(words[0], words[1], 0x5140);
      const uint32_t low23 = ptx::permute_bytes(words[2], words[3], 0x5140);
      const uint32_t high01 = ptx::permute_bytes(words[0], words[1], 0x7362);
      const uint32_t high23 = ptx::permute_bytes(words[2], words[3], 0x7362);
      words[0] = ptx::permute_bytes(low01, low23, 0x5410);
      words[1] = ptx::permute_bytes(low01, low23, 0x7632);
      words[2] = ptx::permute_bytes(high01, high23, 0x5410);
      words[3] = ptx::permute_bytes(high01, high23, 0x7632);
    }
  }

  /// Stores whole vectors of 16 bytes, with zeros after the end of K.
  __device__ __forceinline__ void write(uint32_t shared, char* matrix, int mn, int k) const {
    const int vector = lane() % kVectors;
    const int at_k = k + vector * 4 * kPerWord;
    if (at_k >= k_) return;
#pragma unroll 4
    for (int place = lane() / kVectors; place < kMn; place += kLinesAtOnce) {
      const int line = mn + place % 32 * kPerWord + place / 32;
      if (line >= mn_) continue;
      Words words;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        words.element[i] = ptx::load_shared_b32(shared + place * kRowBytes + (vector * 4 + i) * 4);
      }
      ptx::store_global(matrix + line * pitch_ + static_cast<int64_t>(at_k) * kElementBytes, words);
    }
  }

  const void* from_;  // see matrix_of_batch()
  char* to_;
  int64_t ld_bytes_, batch_bytes_, pitch_;
  int64_t to_step_;  // bytes from one matrix, or piece of K, to the next in the copy
  int mn_, k_;
  uint32_t matrices_;
};

}  // namespace tilewright
