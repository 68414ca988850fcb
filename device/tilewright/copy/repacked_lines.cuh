// Repacks a matrix that TMA cannot load: copies its lines, unchanged, to lines that begin at multiples of 128 bytes.
#pragma once

#include "tilewright/operand/matrix_of_batch.cuh"
#include "tilewright/operand/repacked_matrix.cuh"
#include "tilewright/ptx/global.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// Operand: Source, kIsPointerArray, kIsKMajor, kElementBytes, kAlignmentBytes (of address, leading dimension and batch
/// stride: 1 to 8).
///
/// A warp moves several pieces of 512 bytes at once. They are parts of one line or, if lines are short, of several. A
/// thread moves 16 bytes of each piece: it loads the two aligned 16-byte vectors that these bytes overlap and combines
/// them by shifts. After the end of a line the copy has unspecified values.
template <class Operand>
class RepackedLines {
  using Words = Vector<uint32_t, 4>;
  static constexpr int kElementBytes = Operand::kElementBytes;
  static constexpr int kAlignmentBytes = Operand::kAlignmentBytes;
  static constexpr int kVectorBytes = 16;
  static constexpr int kPieceBytes = 32 * kVectorBytes;
  static constexpr int kTogether = 4;  // pieces that a warp has in flight

  /// A thread's part of the pieces that its warp moves at once.
  struct Place {
    const char* from;
    char* to;
    int64_t left;  // bytes from here to the end of the first piece's line
    int pieces;    // number of pieces inside the matrix
  };

 public:
  static constexpr int kWarpBytes = 0;  // of shared memory

  /// Each of the `matrices` different matrices of the batch has `mn` x `k` elements.
  __device__ __forceinline__ RepackedLines(const typename Operand::Source& matrix, char* workspace, int mn, int k,
                                           int matrices)
      : from_(matrix.from.address),
        to_(workspace + matrix.offset),
        ld_bytes_(matrix.from.ld * kElementBytes),
        batch_bytes_(matrix.from.batch_stride * kElementBytes),
        pitch_(matrix.pitch),
        line_bytes_(static_cast<int64_t>(Operand::kIsKMajor ? k : mn) * kElementBytes),
        lines_(Operand::kIsKMajor ? mn : k),
        matrices_(matrices),
        line_step_(line_bytes_ > (kTogether - 1) * kPieceBytes ? 0 : 1) {}

  /// Must be called by whole warps: this one is number `warp` of the grid's `warps`.
  __device__ __forceinline__ void copy(uint32_t /*shared*/, uint32_t warp, uint32_t warps) const {
    const int width = line_step_ == 0 ? kTogether * kPieceBytes : kPieceBytes;
    const int height = line_step_ == 0 ? 1 : kTogether;
    const auto along = static_cast<uint32_t>((line_bytes_ + width - 1) / width);
    const auto across = static_cast<uint32_t>((lines_ + height - 1) / height);
#pragma unroll 1
    for (uint32_t unit = warp; unit < along * across * matrices_; unit += warps) {
      const uint32_t row = unit / along;
      const uint32_t matrix = matrices_ == 1 ? 0 : row / across;
      const int line = static_cast<int>(row - matrix * across) * height;
      const int64_t byte = static_cast<int64_t>(unit - row * along) * width;
      copy(matrix, line, byte, line + height, byte + width);
    }
  }

 private:
  /// Copies the bytes from `byte` to `end_byte` of the lines from `line` to `end_line` of a matrix; bytes outside the
  /// matrix are left out.
  __device__ __forceinline__ void copy(uint32_t matrix, int line, int64_t byte, int end_line, int64_t end_byte) const {
    const char* const begin = matrix_of_batch<Operand::kIsPointerArray, const char>(from_, batch_bytes_, matrix);
    const char* const end = begin + (lines_ - 1) * ld_bytes_ + line_bytes_;
    const char* const first = begin + line * ld_bytes_ + byte;
    const int64_t last_line = end_line < lines_ ? end_line - 1 : lines_ - 1;
    const char* const last = begin + last_line * ld_bytes_ + (end_byte < line_bytes_ ? end_byte : line_bytes_);
    const bool is_inside = first - begin >= kVectorBytes - 1 && end - last >= 2 * kVectorBytes - 1;

    const int within = static_cast<int>(threadIdx.x % 32) * kVectorBytes;
    Place place;
    place.from = first + within;
    place.to = to_ + (matrix * static_cast<int64_t>(lines_) + line) * pitch_ + byte + within;
    place.left = line_bytes_ - byte - within;
    const int64_t pieces = line_step_ == 0 ? (place.left + kPieceBytes - 1) / kPieceBytes : lines_ - line;
    place.pieces = place.left > 0 ? static_cast<int>(min(pieces, static_cast<int64_t>(kTogether))) : 0;
    if (is_inside) {
      copy_vectors(place);
    } else {
      copy_elements(place);
    }
  }

  __device__ __forceinline__ int64_t from_step() const { return line_step_ == 0 ? kPieceBytes : ld_bytes_; }
  __device__ __forceinline__ int64_t to_step() const { return line_step_ == 0 ? kPieceBytes : pitch_; }

  __device__ __forceinline__ void copy_vectors(const Place& place) const {
    Words low[kTogether], high[kTogether];
    const char* from = place.from;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const uint32_t before = misalignment(from);
      ptx::load_global_if(i < place.pieces, low[i], from - before);
      ptx::load_global_if(i < place.pieces && before != 0, high[i], from - before + kVectorBytes);
      from += from_step();
    }
    from = place.from;
    char* to = place.to;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const Words words = shifted(low[i], high[i], misalignment(from));
      if (i < place.pieces) ptx::store_global(to, words);
      from += from_step();
      to += to_step();
    }
  }

  static __device__ __forceinline__ uint32_t misalignment(const char* address) {
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(address)) % kVectorBytes;
  }

  /// The 16 bytes from byte `before` on.
  static __device__ __forceinline__ Words shifted(const Words& low, const Words& high, uint32_t before) {
    uint32_t words[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) words[i] = i < 4 ? low.element[i] : high.element[i - 4];
    skip<2>(words, (before & 8) != 0);
    if constexpr (kAlignmentBytes < 8) skip<1>(words, (before & 4) != 0);
    Words result;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      result.element[i] = kAlignmentBytes < 4 ? __funnelshift_r(words[i], words[i + 1], before % 4 * 8) : words[i];
    }
    return result;
  }

  template <int kWords>
  static __device__ __forceinline__ void skip(uint32_t (&words)[8], bool does) {
#pragma unroll
    for (int i = 0; i + kWords < 8; ++i) words[i] = does ? words[i + kWords] : words[i];
  }

  /// Copies single elements, and none past the end of a line.
  __device__ __forceinline__ void copy_elements(const Place& place) const {
    using Element = Select<kElementBytes == 1, uint8_t, Select<kElementBytes == 2, uint16_t, uint32_t>>;
#pragma unroll 1
    for (int i = 0; i < place.pieces; ++i) {
      const int64_t left = line_step_ == 0 ? place.left - i * kPieceBytes : place.left;
      const auto* const from = reinterpret_cast<const Element*>(place.from + i * from_step());
      Vector<Element, kVectorBytes / kElementBytes> vector{};
#pragma unroll
      for (int j = 0; j < kVectorBytes / kElementBytes; ++j) {
        if (j * kElementBytes < left) vector.element[j] = from[j];
      }
      ptx::store_global(place.to + i * to_step(), vector);
    }
  }

  const void* from_;  // see matrix_of_batch()
  char* to_;
  int64_t ld_bytes_, batch_bytes_, pitch_, line_bytes_;
  int lines_, matrices_;
  int line_step_;  // lines from one piece to the next, or 0
};

}  // namespace tilewright
