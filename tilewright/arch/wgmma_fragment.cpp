#include "tilewright/arch/wgmma_fragment.hpp"

#include <fmt/format.h>

#include <vector>

#include "tilewright/arch/smem_layout.hpp"
#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::arch {
namespace {

using layout::ComposedLayout;
using layout::Layout;

constexpr int kWarp = 32;
constexpr int kThreads = 128;
constexpr int kWordBytes = 4;
constexpr int kMatrixRows = 8;  // rows of a matrix of ldmatrix
constexpr int kMatrixRowBytes = 16;

/// The values of FragmentLoads::staggered_threads and staggered_loads.
struct Stagger {
  int threads, loads;
};
constexpr Stagger kWordStagger{16, 2};  // the upper 4 of 8 rows begin with the other half of K
constexpr Stagger kByteStagger{4, 1};   // the upper 4 rows of a matrix are the other pair of each four k

/// (thread, load) = (row of a matrix, matrix) of ldmatrix -> offset in the column-major 64x32 tile of an instruction.
/// Row 2t + e goes to the lanes with lane % 4 == t, which hold k = 4t to 4t + 3 and 4t + 16 to 4t + 19 of the A
/// fragment.
Layout matrix_rows() { return {{{2, 4, 4, 4}, {2, 2}}, {{64, 4 * 64, 0, 16}, {2 * 64, 16 * 64}}}; }

Support check_tile(const WgmmaAtom& atom, const Layout& tile) {
  if (atom.a_source != OperandSource::registers) return refuse("{} reads A from shared memory", atom.name);
  if (bits(atom.a) != 32 && bits(atom.a) != 8) {
    return refuse("{}: fragments must have elements of 8 or 32 bits, {} has {}", atom.name, name(atom.a), bits(atom.a));
  }
  for (const auto& [mode, extent] : {std::pair{0, atom.m}, {1, atom.k}}) {
    if (const std::int64_t has = layout::size(tile.mode(mode)); has % extent != 0)
      return refuse("{}: an instruction takes {}, which do not divide the tile's {}", atom.name, extent, has);
  }
  return {};
}

/// The layout of the parts of a mode that are `extent` wide.
Layout parts(const Layout& mode, std::int64_t extent) {
  return layout::composition(mode, Layout(layout::size(mode) / extent, extent));
}

}  // namespace

Result<FragmentLoads> fragment_loads(const WgmmaAtom& atom, const ComposedLayout& smem) {
  if (const Support fits = check_tile(atom, smem.layout); !fits) return Refusal{fits.reason()};
  const Result<SwizzleMode> mode = swizzle_mode(smem.swizzle, bits(atom.a));
  if (!mode) return mode.refusal();
  const Result<MmaAtom> instruction = arch::instruction(atom, 8);  // A is the same for every n
  if (!instruction) return instruction.refusal();

  const Layout mn = smem.layout.mode(0);
  const Layout k = smem.layout.mode(1);
  const Layout tile =
      layout::concatenate({layout::composition(mn, Layout(atom.m, 1)), layout::composition(k, Layout(atom.k, 1))});
  FragmentLoads loads;
  loads.element_bits = bits(atom.a);
  loads.pairs_rows = loads.element_bits == 8;
  const Layout fragment = layout::composition(tile, loads.pairs_rows ? matrix_rows() : instruction->a_tv);
  loads.offset = {smem.swizzle, smem.offset,
                  layout::concatenate({fragment.mode(0), fragment.mode(1), parts(mn, atom.m)})};
  loads.step = parts(k, atom.k);
  for (std::int64_t i = 0; i < layout::size(loads.step); ++i) {
    if (const std::int64_t bytes = loads.step(i) * bits(atom.a) / 8; bytes % base_alignment(*mode) != 0)
      return refuse("instructions along K must be a multiple of {} bytes apart (one {} pattern), got {}",
                    base_alignment(*mode), name(*mode), bytes);
  }
  const Stagger stagger = loads.pairs_rows ? kByteStagger : kWordStagger;
  loads.staggered_threads = stagger.threads;
  loads.staggered_loads = stagger.loads;
  return loads;
}

int bank_conflicts(const FragmentLoads& loads, std::int64_t mn) {
  const auto offset = [&](int thread, int load) {
    const int stagger = (thread & loads.staggered_threads) != 0 ? loads.staggered_loads : 0;
    return loads.offset(thread, load ^ stagger, mn) * loads.element_bits / 8;
  };
  const bool uses_ldmatrix = loads.element_bits == 8;
  const int count = uses_ldmatrix ? 1 : static_cast<int>(layout::size(loads.offset.layout.mode(1)));
  int conflicts = 0;
  for (int load = 0; load < count; ++load) {
    for (int warp = 0; warp < kThreads; warp += kWarp) {
      std::vector<std::int64_t> offsets;
      for (int lane = 0; lane < kWarp; ++lane) {
        offsets.push_back(offset(warp + lane, uses_ldmatrix ? lane / kMatrixRows : load));
      }
      conflicts += bank_conflicts(offsets, uses_ldmatrix ? kMatrixRowBytes : kWordBytes);
    }
  }
  return conflicts;
}

}  // namespace tilewright::arch
