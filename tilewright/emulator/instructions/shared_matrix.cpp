// Decodes matrix descriptors.
#include "tilewright/emulator/instructions/shared_matrix.hpp"

namespace tilewright::emulator {
namespace {

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

}  // namespace tilewright::emulator
