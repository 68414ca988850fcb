// Copy instructions into and out of shared memory: widths, alignments, and which thread holds which bit.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/layout/layout.hpp"

namespace tilewright::arch {

enum class CopyKind : std::uint8_t {
  cp_async_ca,     // global to shared, cached in L1 and L2
  cp_async_cg,     // global to shared, cached in L2 only
  ldmatrix,        // shared to registers: 8x8 matrices of 16-bit elements, spread over a warp
  ldmatrix_trans,  // the same, transposed
  load_shared,     // shared to registers, one thread
};

struct CopyAtom {
  std::string_view name;  // "ldmatrix_x4_trans"
  CopyKind kind{};
  std::string_view ptx;  // the mnemonic with all its suffixes
  int bytes = 0;         // moved for one thread by one instruction
  int alignment = 0;     // of every address, in bytes
  int min_sm = 80;

  /// (thread, value) -> bit of the instruction's source, in bits. For ldmatrix the source is its matrices one after the
  /// other, rows of 128 bits: `src` is the row that a thread points at, `dst` what it receives.
  /// Threads whose addresses an instruction ignores have stride 0 in `src`.
  layout::Layout src;
  layout::Layout dst;

  bool operator==(const CopyAtom&) const = default;
};

/// Threads that execute the instruction together: 32 or 1.
int threads(const CopyAtom& atom);
/// Whether a row agrees with itself: `dst` is a bijection onto the source's bits, `src` covers them, `bytes` is what a
/// thread receives.
Support check(const CopyAtom& atom);

const std::vector<CopyAtom>& copy_atoms();
/// The row of that kind moving `bytes` a thread (ldmatrix: 4 for x1, 8 for x2, 16 for x4), or null.
const CopyAtom* find_copy_atom(CopyKind kind, int bytes);

}  // namespace tilewright::arch
