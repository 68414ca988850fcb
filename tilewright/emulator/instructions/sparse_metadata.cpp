#include "tilewright/emulator/instructions/sparse_metadata.hpp"

#include "tilewright/emulator/cta.hpp"

namespace tilewright::emulator {

std::uint32_t SparseMetadata::chunk(const std::uint32_t* words, int selector, int row, int index) const {
  const int group = row % 8, half = row / 8;
  const int of_group = element_bytes == 1 ? half + 2 * (index / 8) : index / 4;
  const int shift = element_bytes == 1 ? 4 * (index % 8) : 16 * half + 4 * (index % 4);
  return (words[4 * group + selector * lanes() + of_group] >> shift) & 15;
}

void find_stored(Warp& warp, const Instruction& in, const SparseMetadata& metadata, const std::uint32_t* words,
                 int selector, int row, std::array<int, kMaxStored>& places) {
  for (int index = 0; index < metadata.chunks(); ++index) {
    const std::uint32_t bits = metadata.chunk(words, selector, row, index);
    const auto first = static_cast<int>(bits & 3), second = static_cast<int>(bits >> 2);
    bool valid = first != second && (!metadata.ordered || first < second);
    if (metadata.element_bytes == 4) {
      constexpr std::uint32_t kFirst = 0b0100, kSecond = 0b1110;
      valid = bits == kFirst || bits == kSecond;
      places[static_cast<std::size_t>(index)] = 2 * index + (bits == kSecond ? 1 : 0);
    } else {
      const std::size_t at = 2 * static_cast<std::size_t>(index);
      places[at] = 4 * index + first;
      places[at + 1] = 4 * index + second;
    }
    if (valid) continue;
    warp.report(Severity::error, FindingKind::bad_descriptor, in, 4 * (row % 8), 0, [&] {
      return fmt::format("metadata {:#06b} of chunk {} of row {} of the warp's rows of A, which {}", bits, index, row,
                         metadata.element_bytes == 4 ? "must be 0b0100 or 0b1110"
                         : first == second           ? "names one element twice"
                                                     : "names its elements in descending order");
    });
  }
}

}  // namespace tilewright::emulator
