// A of wgmma through registers: how a warpgroup loads its fragments from an MN-major tile in shared memory, which wgmma
// itself reads for 16-bit types only.
#pragma once

#include <cstdint>

#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::arch {

/// The loads of one instruction's fragment.
struct FragmentLoads {
  int element_bits = 32;
  /// (thread, load, mn) -> offset in elements, of instruction mn along M and the first along K. Load i of a thread is
  /// the word of its register i.
  layout::ComposedLayout offset;
  /// k -> elements to add for instruction k.
  layout::Layout step;
  /// Threads that have this bit set make load i ^ turned_loads i-th: the lanes of a warp then reach all banks.
  int turned_threads = 0;
  int turned_loads = 0;

  bool operator==(const FragmentLoads&) const = default;
};

/// The loads from `smem`, (mn, k) -> offset in elements. Each word is one ld.shared.b32. In rows of 64 and of 128
/// bytes, swizzled, no load has a bank conflict: of 8 rows and 4 k, the 16-byte chunks at k and k ^ 1 (of 64 bytes: k
/// and k ^ 2) would share banks, so half of the lanes load k + 4 meanwhile. Refused: an atom without A in registers,
/// elements of other than 32 bits, extents that the instruction does not divide, instructions along K that are no whole
/// swizzle patterns apart.
Result<FragmentLoads> fragment_loads(const WgmmaAtom& atom, const layout::ComposedLayout& smem);

/// Wavefronts beyond the least, of all loads that the warpgroup makes for instruction (mn, 0): smem_layout.hpp's model.
int bank_conflicts(const FragmentLoads& loads, std::int64_t mn);

}  // namespace tilewright::arch
