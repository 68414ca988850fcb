// Thread-value layouts of tiled MMAs: a tensor is divided by the atom, then by the atoms over threads.
#include "tilewright/arch/tiled_mma.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "tilewright/base/error.hpp"

namespace tilewright::arch {
namespace {

using layout::concatenate;
using layout::Layout;
using layout::Tiler;

constexpr int kM = 0;
constexpr int kN = 1;
constexpr int kK = 2;

/// Operand A, B or C: its two modes out of m, n and k, and the atom's thread-value layout.
struct Operand {
  std::array<int, 2> modes;
  const Layout& tv;
};
Operand operand_a(const TiledMma& mma) { return {{kM, kK}, mma.atom.a_tv}; }
Operand operand_b(const TiledMma& mma) { return {{kN, kK}, mma.atom.b_tv}; }
Operand operand_c(const TiledMma& mma) { return {{kM, kN}, mma.atom.c_tv}; }

std::int64_t atom_extent(const MmaAtom& atom, int mode) {
  const std::array<int, 3> extents{atom.m, atom.n, atom.k};
  return extents[static_cast<std::size_t>(mode)];
}

/// The number of atoms over threads along a mode.
std::int64_t atoms_along(const TiledMma& mma, int mode) { return layout::size(mma.threads.mode(1 + mode)); }

const Layout& permutation(const TiledMma& mma, int mode) { return mma.permutation[static_cast<std::size_t>(mode)]; }

Layout thrfrg(const TiledMma& mma, const Layout& tensor, const Operand& operand) {
  const auto [first, second] = operand.modes;
  const Layout ordered = layout::logical_divide(tensor, Tiler{permutation(mma, first), permutation(mma, second)});
  const Tiler atom{Layout(atom_extent(mma.atom, first), 1), Layout(atom_extent(mma.atom, second), 1)};
  const Layout by_atom = layout::zipped_divide(ordered, atom);         // ((AtomX,AtomY),(RestX,RestY,...))
  const Layout tv = layout::composition(by_atom.mode(0), operand.tv);  // (ThrV,FrgV)

  const Layout rests = by_atom.mode(1);
  const Layout x = layout::logical_divide(rests.mode(0), Layout(atoms_along(mma, first), 1));
  const Layout y = layout::logical_divide(rests.mode(1), Layout(atoms_along(mma, second), 1));
  std::vector<Layout> values{x.mode(1), y.mode(1)};
  for (int i = 2; i < rests.rank(); ++i) values.push_back(rests.mode(i));
  return concatenate(
      {concatenate({tv.mode(0), concatenate({x.mode(0), y.mode(0)})}), concatenate({tv.mode(1), concatenate(values)})});
}

/// thread -> colexicographic index in (ThrV,ThrM,ThrN,ThrK). Threads that differ only in what the atom does not use
/// have the same index.
Layout thread_index(const TiledMma& mma) {
  const Layout gaps = layout::complement(mma.threads, layout::cosize(mma.threads));
  return layout::composition(Layout({layout::size(mma.threads), 1}, {1, 0}),
                             layout::right_inverse(concatenate({mma.threads, gaps})));
}

/// The thread mode (ThrV,(ThrX,ThrY)) as a layout of (ThrV,ThrM,ThrN,ThrK), with stride 0 along the mode that the
/// operand does not have.
Layout over_all_threads(const TiledMma& mma, const Layout& thread_mode, const Operand& operand) {
  std::vector<Layout> modes{thread_mode.mode(0), Layout(atoms_along(mma, kM), 0), Layout(atoms_along(mma, kN), 0),
                            Layout(atoms_along(mma, kK), 0)};
  for (int i = 0; i < 2; ++i) {
    const int mode = operand.modes[static_cast<std::size_t>(i)];
    modes[static_cast<std::size_t>(mode) + 1] = thread_mode.mode(1).mode(i);
  }
  return concatenate(modes);
}

Layout layout_tv(const TiledMma& mma, const Operand& operand) {
  const Layout tile = layout::make_layout({tile_extent(mma, operand.modes[0]), tile_extent(mma, operand.modes[1])});
  const Layout divided = thrfrg(mma, tile, operand);
  const Layout threads = over_all_threads(mma, divided.mode(0), operand);
  return concatenate({layout::composition(threads, thread_index(mma)), divided.mode(1)});
}

Partition partition(const TiledMma& mma, const Layout& tensor, std::int64_t thread, const Operand& operand) {
  if (thread < 0 || thread >= threads(mma))
    throw InvalidArgument(fmt::format("no thread {}: there are {} in {}", thread, threads(mma), mma.atom.name));
  const Layout divided = thrfrg(mma, tensor, operand);
  const std::int64_t index = thread_index(mma)(thread);
  return {divided.mode(1), over_all_threads(mma, divided.mode(0), operand)(index)};
}

}  // namespace

Result<TiledMma> make_tiled_mma(const MmaAtom& atom, const Layout& atoms, const Tiler& permutation) {
  if (atoms.rank() != 3) return refuse("the layout of atoms must have modes (m,n,k), got {}", layout::to_string(atoms));
  const int given = permutation.is_tuple() ? permutation.rank() : 0;
  if (permutation.is_layout() || given > 3)
    return refuse("there must be one permutation for each of m, n and k, got {}", layout::to_string(permutation));

  const Layout product = layout::tiled_product(atom.thread_ids, atoms);
  TiledMma mma{atom, product, {}};
  for (int mode = 0; mode < 3; ++mode) {
    const std::int64_t unit = atom_extent(atom, mode) * atoms_along(mma, mode);
    const bool whole = mode >= given || permutation[mode].is_whole();
    const Layout order = whole ? Layout(unit, 1) : permutation[mode].layout();
    if (layout::size(order) % unit != 0)
      return refuse("{} of {} threads cover {} of mode {}, which does not divide the permutation {}", atom.name,
                    threads(mma), unit, mode, layout::to_string(order));
    mma.permutation[static_cast<std::size_t>(mode)] = order;
  }
  return mma;
}

std::int64_t threads(const TiledMma& mma) { return layout::size(mma.threads); }

std::int64_t tile_extent(const TiledMma& mma, int mode) { return layout::size(permutation(mma, mode)); }

Layout thrfrg_c(const TiledMma& mma, const Layout& tensor) { return thrfrg(mma, tensor, operand_c(mma)); }
Layout thrfrg_a(const TiledMma& mma, const Layout& tensor) { return thrfrg(mma, tensor, operand_a(mma)); }
Layout thrfrg_b(const TiledMma& mma, const Layout& tensor) { return thrfrg(mma, tensor, operand_b(mma)); }

Layout layout_c_tv(const TiledMma& mma) { return layout_tv(mma, operand_c(mma)); }
Layout layout_a_tv(const TiledMma& mma) { return layout_tv(mma, operand_a(mma)); }
Layout layout_b_tv(const TiledMma& mma) { return layout_tv(mma, operand_b(mma)); }

Partition partition_c(const TiledMma& mma, const Layout& tensor, std::int64_t thread) {
  return partition(mma, tensor, thread, operand_c(mma));
}
Partition partition_a(const TiledMma& mma, const Layout& tensor, std::int64_t thread) {
  return partition(mma, tensor, thread, operand_a(mma));
}
Partition partition_b(const TiledMma& mma, const Layout& tensor, std::int64_t thread) {
  return partition(mma, tensor, thread, operand_b(mma));
}

}  // namespace tilewright::arch
