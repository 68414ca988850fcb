// Tiled copies: a copy atom repeated over threads and values to cover a tile.
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
  /// (thread, value) -> offset in the column-major tile, for the registers of the threads.
  layout::Layout tv;
  /// (thread, (value of one instruction, instruction)) -> offset in the tile, for the source and for the destination.
  layout::Layout s_tv;
  layout::Layout d_tv;
  /// The extents (m, n) that the threads cover at once.
  layout::IntTuple tile;

  bool operator==(const TiledCopy&) const = default;
};

/// `threads` maps (m, n) to a thread, `values` maps (m, n) to a value of the thread. Refused: layouts that are not
/// bijections onto [0, size); what the overload for a thread-value layout refuses.
Result<TiledCopy> make_tiled_copy(const CopyAtom& atom, int element_bits, const layout::Layout& threads,
                                  const layout::Layout& values);
/// The tiled copy of a thread-value layout. Refused: elements that the instruction would split; numbers of threads or
/// values that the instruction does not divide.
Result<TiledCopy> make_tiled_copy(const CopyAtom& atom, int element_bits, const layout::Layout& tv,
                                  const layout::IntTuple& tile);
/// A copy by `atom` of the A (m,k), B (n,k) or C (m,n) fragments of `mma`.
Result<TiledCopy> make_tiled_copy_a(const CopyAtom& atom, int element_bits, const TiledMma& mma);
Result<TiledCopy> make_tiled_copy_b(const CopyAtom& atom, int element_bits, const TiledMma& mma);
Result<TiledCopy> make_tiled_copy_c(const CopyAtom& atom, int element_bits, const TiledMma& mma);

/// A tensor (m, n, ...) as (thread, (value, instruction), (rest, ...)). CuTe's tidfrg_S and tidfrg_D.
/// @throws InvalidArgument if the tensor's modes are not divisible
layout::Layout tidfrg_s(const TiledCopy& copy, const layout::Layout& tensor);
layout::Layout tidfrg_d(const TiledCopy& copy, const layout::Layout& tensor);

/// The source and the destination elements of one thread: offset + layout((value, instruction), (rest, ...)).
/// @throws InvalidArgument if there is no such thread, and as tidfrg does
Partition partition_s(const TiledCopy& copy, const layout::Layout& tensor, std::int64_t thread);
Partition partition_d(const TiledCopy& copy, const layout::Layout& tensor, std::int64_t thread);

}  // namespace tilewright::arch
