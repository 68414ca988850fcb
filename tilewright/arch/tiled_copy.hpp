// A copy instruction repeated over threads and values to cover a tile: which thread moves which element from and to
// where.
#pragma once

#include "tilewright/arch/copy_atom.hpp"
#include "tilewright/arch/tiled_mma.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::arch {

/// CuTe's TiledCopy.
struct TiledCopy {
  CopyAtom atom;
  int element_bits = 0;
  /// (thread, value) -> offset in the column-major tile, of what threads hold in registers.
  layout::Layout tv;
  /// (thread, (value of one instruction, instruction)) -> the same: what a thread reads, and what it writes.
  layout::Layout s_tv;
  layout::Layout d_tv;
  /// The extents (m, n) that the threads cover at once.
  layout::IntTuple tile;

  bool operator==(const TiledCopy&) const = default;
};

/// A tile of values for each thread: `threads` maps (m, n) to a thread, `values` maps (m, n) to a value of the thread.
/// Refused: layouts that are no bijections onto [0, size); whatever make_tiled_copy of (thread, value) refuses.
Result<TiledCopy> make_tiled_copy(const CopyAtom& atom, int element_bits, const layout::Layout& threads,
                                  const layout::Layout& values);
/// Refused: elements that the instruction splits; threads or values that the instruction does not divide.
Result<TiledCopy> make_tiled_copy(const CopyAtom& atom, int element_bits, const layout::Layout& tv,
                                  const layout::IntTuple& tile);
/// What `mma` holds of A (m,k), B (n,k) or C (m,n), moved by `atom`.
Result<TiledCopy> make_tiled_copy_a(const CopyAtom& atom, int element_bits, const TiledMma& mma);
Result<TiledCopy> make_tiled_copy_b(const CopyAtom& atom, int element_bits, const TiledMma& mma);
Result<TiledCopy> make_tiled_copy_c(const CopyAtom& atom, int element_bits, const TiledMma& mma);

/// A tensor (m, n, ...) as (thread, (value, instruction), (rest, ...)). CuTe's tidfrg_S, _D.
/// @throws InvalidArgument where the tensor's modes cannot be divided so.
layout::Layout tidfrg_s(const TiledCopy& copy, const layout::Layout& tensor);
layout::Layout tidfrg_d(const TiledCopy& copy, const layout::Layout& tensor);

/// What one thread reads of a tensor, and what it writes: offset + layout((value, instruction), (rest, ...)).
/// @throws InvalidArgument unless the thread is one of the copy's, and as tidfrg does.
Partition partition_s(const TiledCopy& copy, const layout::Layout& tensor, std::int64_t thread);
Partition partition_d(const TiledCopy& copy, const layout::Layout& tensor, std::int64_t thread);

}  // namespace tilewright::arch
