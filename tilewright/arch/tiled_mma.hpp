// An instruction repeated over threads and values to cover a tile: which thread holds which element of A, B and C.
#pragma once

#include <array>
#include <cstdint>

#include "tilewright/arch/mma_atom.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::arch {

/// CuTe's TiledMMA. Modes m, n, k are 0, 1, 2 throughout.
struct TiledMma {
  MmaAtom atom;
  /// (thread of the atom, m, n, k) -> thread: the atom's threads, repeated over the tile.
  layout::Layout threads;
  /// The elements of each mode that the threads cover at once, in the order in which atoms take them.
  std::array<layout::Layout, 3> permutation;

  bool operator==(const TiledMma&) const = default;
};

/// `atoms` maps (m, n, k) to the groups of threads that execute the atom: warps of mma.sync, warpgroups of wgmma.
/// `permutation` reorders a mode before the atoms divide it, and may repeat the atom in one thread; a mode left out (or
/// whole) is atoms x extent of the atom. Refused: atoms that are not rank 3; more permutations than modes; a
/// permutation that is not a multiple of the atoms.
Result<TiledMma> make_tiled_mma(const MmaAtom& atom, const layout::Layout& atoms,
                                const layout::Tiler& permutation = layout::_);

/// Threads of the tile.
std::int64_t threads(const TiledMma& mma);
/// Elements of mode 0 (m), 1 (n) or 2 (k) that the threads cover at once.
std::int64_t tile_extent(const TiledMma& mma, int mode);

/// A tensor (m,n,...), (m,k,...) or (n,k,...) as ((ThrV,(Thr,Thr)),(FrgV,(Rest,Rest,...))): threads of the atom and
/// atoms over threads, values of the atom and atoms over values. CuTe's thrfrg_C, _A, _B.
/// @throws InvalidArgument where the tensor's modes cannot be divided so.
layout::Layout thrfrg_c(const TiledMma& mma, const layout::Layout& tensor);
layout::Layout thrfrg_a(const TiledMma& mma, const layout::Layout& tensor);
layout::Layout thrfrg_b(const TiledMma& mma, const layout::Layout& tensor);

/// (thread, value) -> offset in the column-major tile of what the threads cover at once. A does not depend on the
/// thread's place along n, B not on m: those have stride 0.
layout::Layout layout_c_tv(const TiledMma& mma);
layout::Layout layout_a_tv(const TiledMma& mma);
layout::Layout layout_b_tv(const TiledMma& mma);

/// What one thread holds of a tensor: offset + layout((value, (rest...))).
struct Partition {
  layout::Layout layout;
  std::int64_t offset = 0;
  bool operator==(const Partition&) const = default;
};
/// @throws InvalidArgument unless 0 <= thread < threads(mma), and as thrfrg does.
Partition partition_c(const TiledMma& mma, const layout::Layout& tensor, std::int64_t thread);
Partition partition_a(const TiledMma& mma, const layout::Layout& tensor, std::int64_t thread);
Partition partition_b(const TiledMma& mma, const layout::Layout& tensor, std::int64_t thread);

}  // namespace tilewright::arch
