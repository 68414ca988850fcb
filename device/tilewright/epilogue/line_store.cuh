// Stores lines of D from shared memory with vectors that are aligned in global memory, whatever the alignment of D.
#pragma once

#include "tilewright/epilogue/shifted_vector.cuh"
#include "tilewright/ptx/shared.cuh"
#include "tilewright/types.cuh"

namespace tilewright {

/// A line is up to kElements elements that are adjacent in global memory. It begins and ends at multiples of
/// kAlignmentBytes bytes. Shared memory holds it in chunks of kVectorBytes bytes. It is stored in vectors that begin at
/// multiples of kVectorBytes bytes of global memory: each is put together from the two chunks that it overlaps. The
/// ends of the line, which are shorter than a vector, are stored in smaller pieces, by threads of their own, so that
/// the warps that store whole vectors do not diverge.
template <class Element, int kElements, int kVectorBytes, int kAlignmentBytes>
class LineStore {
  static constexpr int kElementBytes = static_cast<int>(sizeof(Element));
  static constexpr int kWords = kVectorBytes / 4;
  static constexpr bool kShifts = kAlignmentBytes < kVectorBytes;
  using Words = Vector<uint32_t, kWords>;
  static_assert(kVectorBytes >= 4 && kVectorBytes <= 16 && kVectorBytes % kElementBytes == 0);
  static_assert(kElements % (kVectorBytes / kElementBytes) == 0, "chunks cover a line");

  static constexpr int kEnds = kShifts ? 2 : 0;  // ends of a line that may be no whole vectors
  static constexpr int kTogether = 2;            // vectors that a thread reads before it stores them

 public:
  static constexpr int kPerVector = kVectorBytes / kElementBytes;  // elements
  static constexpr int kVectors = kElements / kPerVector;          // whole vectors of a line at most, and its chunks

  /// Stores kLines lines; must be called by kThreads threads. address(line) is the address of a line's first element,
  /// and the line has count(line) elements, but at most kElements, and none if that is negative. chunk(line, i) is the
  /// shared address of chunk i, which must exist for every line.
  template <int kThreads, int kLines, class Address, class Count, class ChunkAddress>
  static __device__ __forceinline__ void store(int thread, const Address& address, const Count& count,
                                               const ChunkAddress& chunk) {
    // The threads of a line are a power of two, so that each thread has the same vector of all its lines.
    constexpr int kLanes = power_of_two(kVectors);
    constexpr int kStep = kThreads / kLanes;  // lines
    static_assert(kStep > 0, "a line has at most as many vectors as there are threads");
    const int vector = minimum(thread % kLanes, kVectors - 1);
    const bool is_idle = thread % kLanes >= kVectors;
#pragma unroll 1
    for (int line = thread / kLanes; line < kLines; line += kTogether * kStep) {
      char* to[kTogether];
      bool is_whole[kTogether];
      uint32_t words[kTogether][2 * kWords];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int number = minimum(line + j * kStep, kLines - 1);
        const LineStore part(address(number), count(number));
        part.read(words[j], vector, [&](int i) { return chunk(number, i); });
        const int first = part.first(vector);
        to[j] = part.begin_ + first;
        is_whole[j] = !is_idle & (line + j * kStep < kLines) & (first >= 0) & (first + kVectorBytes <= part.bytes_);
      }
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        if (is_whole[j]) store_piece<kVectorBytes>(to[j], words[j], 0);
      }
    }
#pragma unroll 1
    for (int i = thread; i < kLines * kEnds; i += kThreads)
      LineStore(address(i / 2), count(i / 2)).store_end(i % 2, [&](int number) { return chunk(i / 2, number); });
  }

 private:
  static __device__ constexpr int power_of_two(int least) {
    int power = 1;
    while (power < least) power *= 2;
    return power;
  }

  __device__ __forceinline__ LineStore(Element* line, int count)
      : begin_(reinterpret_cast<char*>(line)),
        bytes_(minimum(count, kElements) * kElementBytes),
        skipped_(kShifts ? static_cast<int>(reinterpret_cast<uint64_t>(begin_) % kVectorBytes) : 0) {}

  /// The byte of the line at which vector number `vector` begins.
  __device__ __forceinline__ int first(int vector) const { return vector * kVectorBytes - skipped_; }

  /// Stores the line's part of the first vector if `end` is 0, and of the last one if it is 1, unless it is whole. If
  /// both are the same vector, each end stores the part up to or from a byte that is aligned for both.
  template <class ChunkAddress>
  __device__ __forceinline__ void store_end(int end, const ChunkAddress& chunk) const {
    const int last = (skipped_ + bytes_) / kVectorBytes;
    const int vector = end == 0 ? 0 : last;
    const int from = maximum(-first(vector), 0), to = minimum(bytes_ - first(vector), kVectorBytes);
    if (bytes_ <= 0 || to == from || to - from == kVectorBytes) return;
    int pivot = end == 0 ? kVectorBytes : 0;
    if (last == 0) pivot = to & -(1 << (31 - __clz(from ^ to)));
    const int length = end == 0 ? pivot - from : to - pivot;
    uint32_t words[2 * kWords];
    read(words, vector, chunk);
    store_pieces<kVectorBytes / 2>(begin_ + first(vector), words, pivot, length, end == 0);
  }

  /// Reads vector number `vector` to the first half of `words`.
  template <class ChunkAddress>
  __device__ __forceinline__ void read(uint32_t (&words)[2 * kWords], int vector, const ChunkAddress& chunk) const {
    if constexpr (kShifts) {
      read_chunk(words, chunk(maximum(vector - 1, 0)));
      read_chunk(words + kWords, chunk(minimum(vector, kVectors - 1)));
      shift_words<kAlignmentBytes, kWords>(words, skipped_);
    } else {
      read_chunk(words, chunk(vector));
    }
  }
  static __device__ __forceinline__ void read_chunk(uint32_t* words, uint32_t address) {
    const auto read = ptx::load_shared<Words>(address);
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = read.element[i];
  }

  /// Stores `length` bytes of the vector at `at` in pieces of kBytes and less: those up to byte `pivot` if `is_before`,
  /// else those from it on. `pivot` is a multiple of a power of two that is larger than `length`, or zero.
  template <int kBytes>
  static __device__ __forceinline__ void store_pieces(char* at, const uint32_t (&words)[2 * kWords], int pivot,
                                                      int length, bool is_before) {
    if constexpr (kBytes >= kAlignmentBytes) {
      if ((length & kBytes) != 0) {
        const int offset = is_before ? pivot - (length & -kBytes) : pivot + (length & -2 * kBytes);
        store_piece<kBytes>(at + offset, words, offset);
      }
      store_pieces<kBytes / 2>(at, words, pivot, length, is_before);
    }
  }

  /// Stores kBytes bytes of `words`, from byte `offset` on, at `at`. `offset` is a multiple of kBytes.
  template <int kBytes>
  static __device__ __forceinline__ void store_piece(char* at, const uint32_t (&words)[2 * kWords], int offset) {
    if constexpr (kBytes >= 4) {
      Vector<uint32_t, kBytes / 4> piece;
#pragma unroll
      for (int i = 0; i < kBytes / 4; ++i) piece.element[i] = word<kBytes / 4>(words, offset / 4, i);
      *reinterpret_cast<Vector<uint32_t, kBytes / 4>*>(at) = piece;
    } else {
      using Piece = Select<kBytes == 2, uint16_t, uint8_t>;
      *reinterpret_cast<Piece*>(at) = static_cast<Piece>(word<1>(words, offset / 4, 0) >> (offset % 4 * 8));
    }
  }

  /// words[number + i], where `number` is a multiple of kStep. The words stay in registers.
  template <int kStep>
  static __device__ __forceinline__ uint32_t word(const uint32_t (&words)[2 * kWords], int number, int i) {
    uint32_t found = words[i];
#pragma unroll
    for (int other = kStep; other < kWords; other += kStep) found = number == other ? words[other + i] : found;
    return found;
  }

  char* begin_;
  int bytes_;
  int skipped_;  // bytes from the beginning of the first vector to that of the line
};

}  // namespace tilewright
