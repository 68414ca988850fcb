// Structured sparsity: of each chunk of a row of A only some elements are stored, and metadata says which.
#pragma once

#include <array>
#include <cstdint>

#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {

/// A sparse operand stores two of each four elements of 8 or 16 bits, or one of each two elements of 32 bits. Four bits
/// of metadata say which.
/// Some lanes of each group of four give the metadata of rows g and g + 8 of a warp's 16, where g is the number of the
/// group. With 16 or 32 bits a lane has 4 chunks of each of the two rows, with 8 bits 8 chunks of one of them. The
/// mapping is that of CuTe's layouts ELayout_64x16, ELayout_64x32 and ELayout_64x64.
struct SparseMetadata {
  int element_bytes = 2;
  int k = 32;            // elements of a row of A, stored or not
  bool ordered = false;  // .ordered_metadata: the first of two stored elements must come first in the row

  int stored() const { return k / 2; }
  int chunks() const { return element_bytes == 4 ? k / 2 : k / 4; }
  /// How many lanes of each group of four give metadata.
  int lanes() const { return chunks() / 4; }
  int selectors() const { return 4 / lanes(); }

  /// The four bits of a chunk of a row. `words` has a register of each lane.
  std::uint32_t chunk(const std::uint32_t* words, int selector, int row, int index) const;
};

inline constexpr int kMaxStored = 32;

/// The places in the row of the stored elements of one of a warp's 16 rows. Metadata that means nothing is a finding.
void find_stored(Warp& warp, const Instruction& in, const SparseMetadata& metadata, const std::uint32_t* words,
                 int selector, int row, std::array<int, kMaxStored>& places);

}  // namespace tilewright::emulator
