// Descriptors of shared matrices, and the canonical layouts that they stand for.
#include "tilewright/emulator/instructions/shared_matrix.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kCore = 8;          // rows of a core matrix
constexpr std::uint32_t kChunk = 16;        // bytes of one of its rows
constexpr std::uint32_t kWindow = 0x3ffff;  // addresses have 18 bits

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

// The canonical layouts, in 16-byte chunks (W: chunks of a swizzled row):
//   K-major:          rows of W chunks, 8 of them a core column of `stride`; the chunks of one instruction are
//                     neighbours. Without swizzle, core matrices lie `leading` apart along K.
//   MN-major:         rows of W chunks, one for each k; 8 k are `stride` apart, W chunks of MN `leading` apart.
//                     Without swizzle, chunks of MN are `stride` apart, and 8 k `leading`.
std::uint32_t SharedMatrix::address(Major major, std::uint32_t mn, std::uint32_t k) const {
  std::uint32_t offset = 0;
  if (major == Major::k) {
    offset = mn / kCore * stride_bytes + mn % kCore * swizzle_bytes;
    offset += swizzle_bytes == kChunk ? k * leading_bytes : k * kChunk;
  } else if (swizzle_bytes == kChunk) {
    offset = mn * stride_bytes + k % kCore * kChunk + k / kCore * leading_bytes;
  } else {
    const std::uint32_t chunks = swizzle_bytes / kChunk;
    offset = mn / chunks * leading_bytes + mn % chunks * kChunk + k % kCore * swizzle_bytes + k / kCore * stride_bytes;
  }
  return swizzled((start + offset) & kWindow, swizzle_bytes, base_offset);
}

}  // namespace tilewright::emulator
