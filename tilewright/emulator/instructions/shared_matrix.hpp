// Matrix descriptors of wgmma: decoding, and the shared-memory address of each 16-byte chunk of the matrix.
#pragma once

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

  /// Address of a 16-byte chunk. K-major: chunk `k` of row `mn`; MN-major: chunk `mn` of row `k`.
  std::uint32_t address(Major major, std::uint32_t mn, std::uint32_t k) const;
  /// Whether addresses depend on leading_bytes, for a matrix of `mn_chunks` chunks if it is MN-major.
  bool uses_leading(Major major, std::uint32_t mn_chunks) const {
    return swizzle_bytes == 16 || (major == Major::mn && mn_chunks > swizzle_bytes / 16);
  }
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
inline std::uint32_t SharedMatrix::address(Major major, std::uint32_t mn, std::uint32_t k) const {
  constexpr std::uint32_t kCoreRows = 8;           // rows of a core matrix
  constexpr std::uint32_t kChunk = 16;             // bytes of a row of a core matrix
  constexpr std::uint32_t kAddressMask = 0x3ffff;  // descriptor addresses have 18 bits
  std::uint32_t offset = 0;
  if (major == Major::k) {
    offset = mn / kCoreRows * stride_bytes + mn % kCoreRows * swizzle_bytes;
    offset += swizzle_bytes == kChunk ? k * leading_bytes : k * kChunk;
  } else if (swizzle_bytes == kChunk) {
    offset = mn * stride_bytes + k % kCoreRows * kChunk + k / kCoreRows * leading_bytes;
  } else {
    const std::uint32_t chunks = swizzle_bytes / kChunk;
    offset = mn / chunks * leading_bytes + mn % chunks * kChunk + k % kCoreRows * swizzle_bytes +
             k / kCoreRows * stride_bytes;
  }
  return swizzled((start + offset) & kAddressMask, swizzle_bytes, base_offset);
}

}  // namespace tilewright::emulator
