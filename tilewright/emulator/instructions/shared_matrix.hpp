// Matrix descriptors of wgmma: decoding, and the shared-memory address of each 16-byte chunk of the matrix.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tilewright::emulator {

/// The contiguous dimension of a matrix in shared memory.
enum class Major : std::uint8_t { k, mn };

/// PTX ISA, "Matrix Descriptor Format": bits 0..13 start address, 16..29 leading and 32..45 stride byte offset (all in
/// 16 bytes), 49..51 base offset, 62..63 swizzle mode.
struct SharedMatrix {
  std::uint32_t start = 0;
  std::uint32_t leading_bytes = 0;
  std::uint32_t stride_bytes = 0;
  std::uint32_t base_offset = 0;
  std::uint32_t swizzle_bytes = 16;  // 16: none

  static constexpr std::uint32_t kCoreRows = 8;  // rows of a core matrix, or of a swizzle atom

  /// Address of a 16-byte chunk. K-major: chunk `k` of row `mn`; MN-major: chunk `mn` of row `k`.
  std::uint32_t address(Major major, std::uint32_t mn, std::uint32_t k) const;
  /// Addresses of a chunk of the kCoreRows rows from a row that is a multiple of kCoreRows.
  void core_addresses(Major major, std::uint32_t mn, std::uint32_t k, std::uint32_t (&to)[kCoreRows]) const;
  /// The end of the 128-byte lines up to that of a chunk: a swizzle does not leave a line. Chunks before it do not wrap
  /// around if the end is at most kAddresses.
  std::uint64_t end_of_lines(Major major, std::uint32_t mn, std::uint32_t k) const;
  static constexpr std::uint32_t kAddresses = 1U << 18;  // descriptor addresses have 18 bits
  /// Whether addresses depend on leading_bytes, for a matrix of `mn_chunks` chunks if it is MN-major.
  bool uses_leading(Major major, std::uint32_t mn_chunks) const {
    return swizzle_bytes == 16 || (major == Major::mn && mn_chunks > swizzle_bytes / 16);
  }

 private:
  /// Offset of a chunk from the start address, before the swizzle.
  std::uint32_t offset(Major major, std::uint32_t mn, std::uint32_t k) const;
  std::uint32_t address_at(std::uint32_t offset) const;
};

SharedMatrix decode_descriptor(std::uint64_t descriptor);

/// Applies the swizzle: xors address bits 4 and up with the low bits of the number of the address's 128-byte row: 3
/// bits for a swizzle of 128 bytes, 2 for 64, 1 for 32, none for 16.
constexpr std::uint32_t swizzled(std::uint32_t address, std::uint32_t swizzle_bytes, std::uint32_t base_offset = 0) {
  const std::uint32_t row = (address >> 7) - base_offset;
  return address ^ ((row & (swizzle_bytes / 16 - 1)) << 4);
}

// PTX ISA, canonical layouts of wgmma. A swizzled row has W = 2, 4 or 8 chunks of 16 bytes; 8 of them are a swizzle
// atom.
// - K-major, swizzled: a row holds W chunks along K. Atoms are `stride` apart along M or N.
// - K-major, no swizzle: core matrices are `stride` apart along M or N, and `leading` apart along K.
// - MN-major, swizzled: a row holds W chunks along M or N. Atoms are `stride` apart along K, `leading` along M or N.
// - MN-major, no swizzle: core matrices are `leading` apart along K, and `stride` apart along M or N.
// Rows of one core matrix or atom are `swizzle_bytes` apart, also without a swizzle.
inline std::uint32_t SharedMatrix::offset(Major major, std::uint32_t mn, std::uint32_t k) const {
  constexpr std::uint32_t kChunk = 16;  // bytes of a row of a core matrix
  if (major == Major::k) {
    return mn / kCoreRows * stride_bytes + mn % kCoreRows * swizzle_bytes +
           (swizzle_bytes == kChunk ? k * leading_bytes : k * kChunk);
  }
  if (swizzle_bytes == kChunk) return mn * stride_bytes + k % kCoreRows * kChunk + k / kCoreRows * leading_bytes;
  const std::uint32_t chunks = swizzle_bytes / kChunk;
  return mn / chunks * leading_bytes + mn % chunks * kChunk + k % kCoreRows * swizzle_bytes +
         k / kCoreRows * stride_bytes;
}

inline std::uint32_t SharedMatrix::address_at(std::uint32_t offset) const {
  return swizzled((start + offset) & (kAddresses - 1), swizzle_bytes, base_offset);
}

inline std::uint32_t SharedMatrix::address(Major major, std::uint32_t mn, std::uint32_t k) const {
  return address_at(offset(major, mn, k));
}

inline std::uint64_t SharedMatrix::end_of_lines(Major major, std::uint32_t mn, std::uint32_t k) const {
  constexpr std::uint64_t kLine = 128;
  const std::uint32_t row_chunks = major == Major::mn ? swizzle_bytes / 16 : 1;
  const std::uint32_t before = (std::min(mn, row_chunks - 1) - mn % row_chunks) * 16;  // a chunk of an earlier mn
  return (std::uint64_t{start} + offset(major, mn, k) + before) / kLine * kLine + kLine;
}

inline void SharedMatrix::core_addresses(Major major, std::uint32_t mn, std::uint32_t k,
                                         std::uint32_t (&to)[kCoreRows]) const {
  const std::uint32_t first = offset(major, mn, k);
  for (std::uint32_t i = 0; i < kCoreRows; ++i) to[i] = address_at(first + i * swizzle_bytes);
}

}  // namespace tilewright::emulator
