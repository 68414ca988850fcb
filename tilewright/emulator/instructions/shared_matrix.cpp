// Decodes matrix descriptors, and computes addresses in the canonical layouts.
#include "tilewright/emulator/instructions/shared_matrix.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kCoreRows = 8;           // rows of a core matrix
constexpr std::uint32_t kChunk = 16;             // bytes of a row of a core matrix
constexpr std::uint32_t kAddressMask = 0x3ffff;  // descriptor addresses have 18 bits

std::uint32_t field(std::uint64_t descriptor, int first, int bits) {
  return static_cast<std::uint32_t>((descriptor >> first) & ((std::uint64_t{1} << bits) - 1));
}

}  // namespace

SharedMatrix decode_descriptor(std::uint64_t descriptor) {
  static constexpr std::uint32_t kSwizzles[] = {16, 128, 64, 32};
  SharedMatrix matrix;
  matrix.start = field(descriptor, 0, 14) << 4;
  matrix.leading_bytes = field(descriptor, 16, 14) << 4;
  matrix.stride_bytes = field(descriptor, 32, 14) << 4;
  matrix.base_offset = field(descriptor, 49, 3);
  matrix.swizzle_bytes = kSwizzles[field(descriptor, 62, 2)];
  return matrix;
}

// PTX ISA, canonical layouts of wgmma. A swizzled row has W = 2, 4 or 8 chunks of 16 bytes; 8 of them are a swizzle
// atom.
// - K-major, swizzled: a row holds W chunks along K. Atoms are `stride` apart along M or N.
// - K-major, no swizzle: core matrices are `stride` apart along M or N, and `leading` apart along K.
// - MN-major, swizzled: a row holds W chunks along M or N. Atoms are `stride` apart along K, `leading` along M or N.
// - MN-major, no swizzle: core matrices are `leading` apart along K, and `stride` apart along M or N.
std::uint32_t SharedMatrix::address(Major major, std::uint32_t mn, std::uint32_t k) const {
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
