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

}  // namespace tilewright::emulator
