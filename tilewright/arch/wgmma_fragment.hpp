// Loads of the A fragments of wgmma from an MN-major tile in shared memory into registers. wgmma reads MN-major
// operands from shared memory for 16-bit types only.
#pragma once

#include <cstdint>

#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/swizzle.hpp"

namespace tilewright::arch {

/// The loads of the A fragment of one instruction.
///
/// Elements of 32 bits: a thread executes four ld.shared.b32, one for each register. Elements of 8 bits: a warp
/// executes one ldmatrix.x4.trans, whose 16-bit elements are pairs of bytes along M, in rows of k. From each matrix, a
/// lane receives rows 2g and 2g + 1 of the warp's 16 rows (g = lane / 4) at two k, hence `pairs_rows`. Byte
/// permutations (prmt) assemble the four k of a register from two matrices.
struct FragmentLoads {
  int element_bits = 32;
  /// (thread, load, mn) -> offset in elements, for instruction mn along M and the first instruction along K. For words,
  /// load i fills register i. For bytes, load i is row thread % 8 of matrix i.
  layout::ComposedLayout offset;
  /// k -> offset in elements to add for instruction k along K.
  layout::Layout step;
  /// Threads (rows of matrices) with this bit set execute load i ^ staggered_loads in place of load i, so that the
  /// lanes of a warp access different banks.
  int staggered_threads = 0;
  int staggered_loads = 0;
  /// The two rows of D that a thread holds are adjacent, not 8 rows apart.
  bool pairs_rows = false;

  bool operator==(const FragmentLoads&) const = default;
};

/// The loads from `smem`, (mn, k) -> offset in elements. With rows of 64 or 128 bytes and their swizzle, no load has a
/// bank conflict. Words: among 8 rows and 4 k, the 16-byte chunks at k and k ^ 1 (64-byte rows: k and k ^ 2) share
/// banks, so half of the lanes load k + 4 at the same time. Bytes: the rows of a matrix would be every other pair of k,
/// which share banks, so half of the rows are from the other pairs. Refused: an atom without A in registers; elements
/// of 16 bits; extents that the instruction does not divide; instructions along K that are not whole swizzle patterns
/// apart.
Result<FragmentLoads> fragment_loads(const WgmmaAtom& atom, const layout::ComposedLayout& smem);

/// Bank conflicts (smem_layout.hpp) of all loads of the warpgroup for instruction (mn, 0).
int bank_conflicts(const FragmentLoads& loads, std::int64_t mn);

}  // namespace tilewright::arch
