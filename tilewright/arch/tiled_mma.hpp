// Tiled MMAs: an MMA atom repeated over threads and values to cover a tile.
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
  /// (thread of the atom, m, n, k) -> thread: the atom's threads, repeated over the atoms of the tile.
  layout::Layout threads;
  /// The elements of each mode that all threads cover at once, in the order of the atoms.
  std::array<layout::Layout, 3> permutation;

  bool operator==(const TiledMma&) const = default;
};

/// `atoms` is CuTe's AtomLayoutMNK: it maps (m, n, k) to a group of threads that executes the atom, a warp for
/// mma.sync, a warpgroup for wgmma. `permutation` is CuTe's PermutationMNK: it reorders a mode before the atoms divide
/// it, and may repeat the atom in a thread. For a missing mode, or `_`, it is the atoms times the extent of the atom.
/// Refused: atoms of a rank other than 3; more permutations than modes; a permutation whose size is not a multiple of
/// the atoms.
Result<TiledMma> make_tiled_mma(const MmaAtom& atom, const layout::Layout& atoms,
                                const layout::Tiler& permutation = layout::_);

/// The number of threads.
std::int64_t threads(const TiledMma& mma);
/// The elements of mode 0 (m), 1 (n) or 2 (k) that all threads cover at once.
std::int64_t tile_extent(const TiledMma& mma, int mode);

/// A tensor (m,n,...), (m,k,...) or (n,k,...) as ((ThrV,(Thr,Thr)),(FrgV,(Rest,Rest,...))). CuTe's thrfrg_C, thrfrg_A
/// and thrfrg_B. @throws InvalidArgument if the tensor's modes are not divisible
layout::Layout thrfrg_c(const TiledMma& mma, const layout::Layout& tensor);
layout::Layout thrfrg_a(const TiledMma& mma, const layout::Layout& tensor);
layout::Layout thrfrg_b(const TiledMma& mma, const layout::Layout& tensor);

/// (thread, value) -> offset in the column-major tile that all threads cover at once. A has stride 0 along the n mode
/// of the threads, B along their m mode.
layout::Layout layout_c_tv(const TiledMma& mma);
layout::Layout layout_a_tv(const TiledMma& mma);
layout::Layout layout_b_tv(const TiledMma& mma);

/// The elements of a tensor that one thread holds: offset + layout((value, (rest...))).
struct Partition {
  layout::Layout layout;
  std::int64_t offset = 0;
  bool operator==(const Partition&) const = default;
};
/// @throws InvalidArgument unless 0 <= thread < threads(mma), and as thrfrg does
Partition partition_c(const TiledMma& mma, const layout::Layout& tensor, std::int64_t thread);
Partition partition_a(const TiledMma& mma, const layout::Layout& tensor, std::int64_t thread);
Partition partition_b(const TiledMma& mma, const layout::Layout& tensor, std::int64_t thread);

}  // namespace tilewright::arch
