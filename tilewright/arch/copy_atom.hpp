// Copy atoms: instructions into and out of shared memory, with widths, alignments and thread-value layouts in bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"
#include "tilewright/layout/layout.hpp"

namespace tilewright::arch {

enum class CopyKind : std::uint8_t {
  cp_async_ca,     // global to shared, cached in L1 and L2
  cp_async_cg,     // global to shared, cached in L2 only
  ldmatrix,        // shared to registers: 8x8 matrices of 16-bit elements, by a warp
  ldmatrix_trans,  // the same, transposed
  stmatrix,        // registers to shared: the inverse of ldmatrix
  stmatrix_trans,
  load_shared,  // shared to registers, one thread
  bulk,         // cp.async.bulk, one thread: see bulk_copy_atom.hpp
};

struct CopyAtom {
  std::string name;  // "ldmatrix_x4_trans"
  CopyKind kind{};
  std::string ptx;    // the mnemonic with all qualifiers
  int bytes = 0;      // copied per thread by one instruction
  int alignment = 0;  // of addresses in shared memory, in bytes
  Target min_target = kSm80;

  /// (thread, value) -> bit of the copied data. The data of ldmatrix and stmatrix are the matrices one after the other,
  /// in rows of 128 bits. For ldmatrix, `src` is the row whose address a thread provides, and `dst` the bits it
  /// receives. For stmatrix, `src` is the bits in a thread's registers, and `dst` the row whose address it provides.
  /// Threads whose addresses are ignored have stride 0.
  layout::Layout src;
  layout::Layout dst;

  bool operator==(const CopyAtom&) const = default;
};

/// Threads that execute the instruction together: 32 or 1.
int threads(const CopyAtom& atom);
/// Whether a row is consistent: the register side is a bijection onto the bits, the address side covers them, and each
/// thread holds `bytes`.
Support check(const CopyAtom& atom);

/// cp.async of 4, 8, 16 bytes; ldmatrix and stmatrix (sm_90) x1, x2, x4 of 16-bit elements, plain and transposed (the
/// 8-bit forms are sm_100's); ld.shared of 1 to 16 bytes.
const std::vector<CopyAtom>& copy_atoms();
/// The row of that kind that copies `bytes` per thread (ldmatrix, stmatrix: 4 for x1, 8 for x2, 16 for x4), or null.
const CopyAtom* find_copy_atom(CopyKind kind, int bytes);

}  // namespace tilewright::arch
