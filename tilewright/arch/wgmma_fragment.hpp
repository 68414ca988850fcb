// A of wgmma through registers: how a warpgroup loads its fragments from an MN-major tile in shared memory, which wgmma
// itself reads for 16-bit types only.
#pragma once

#include <cstdint>

#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::arch {

/// The loads of one instruction's fragment.
///
/// Elements of 32 bits: each of a thread's four loads is an ld.shared.b32, the word of one register.
/// Elements of 8 bits: one ldmatrix.x4.trans, whose matrices are pairs of bytes along M in rows of k. A lane receives,
/// of each matrix, rows 2g and 2g + 1 of the warp's 16 (g = lane / 4) at two k: `pairs_rows`. Two matrices hold the
/// four k of a register, which byte permutations put together.
struct FragmentLoads {
  int element_bits = 32;
  /// (thread, load, mn) -> offset in elements, of instruction mn along M and the first along K. Load i is the word of
  /// register i; of bytes, row thread % 8 of matrix i, whichever lane gives its address.
  layout::ComposedLayout offset;
  /// k -> elements to add for instruction k.
  layout::Layout step;
  /// Threads (rows of matrices) that have this bit set make load i ^ turned_loads i-th: so the lanes of a warp reach
  /// all banks at once.
  int turned_threads = 0;
  int turned_loads = 0;
  /// A thread's two rows of D are neighbours, and not 8 apart.
  bool pairs_rows = false;

  bool operator==(const FragmentLoads&) const = default;
};

/// The loads from `smem`, (mn, k) -> offset in elements. In rows of 64 and of 128 bytes, swizzled, no load has a bank
/// conflict. Words: of 8 rows and 4 k, the 16-byte chunks at k and k ^ 1 (of 64 bytes: k and k ^ 2) would share banks,
/// so half of the lanes load k + 4 meanwhile. Bytes: a matrix of each thread's first two k would have every other pair
/// of k, so half of its rows are the other two. Refused: an atom without A in registers, elements of 16 bits, extents
/// that the instruction does not divide, instructions along K that are no whole swizzle patterns apart.
Result<FragmentLoads> fragment_loads(const WgmmaAtom& atom, const layout::ComposedLayout& smem);

/// Wavefronts beyond the least, of all loads that the warpgroup makes for instruction (mn, 0): smem_layout.hpp's model.
int bank_conflicts(const FragmentLoads& loads, std::int64_t mn);

}  // namespace tilewright::arch
