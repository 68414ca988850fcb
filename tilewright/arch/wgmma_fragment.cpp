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
constexpr int kMatrixRows = 8;  // of ldmatrix
constexpr int kMatrixRowBytes = 16;

/// Whose loads are turned, and by what.
struct Turn {
  int threads, loads;
};
constexpr Turn kTurnOfWords{16, 2};  // the upper 4 of 8 rows begin with the other half of K
constexpr Turn kTurnOfBytes{4, 1};   // the upper 4 rows of a matrix are another pair of each four k

/// (row of a matrix, matrix) of ldmatrix -> offset in the column-major 64x32 tile of an instruction, as (thread, load):
/// row 2t + e is for the lanes with lane % 4 = t, who hold k 4t to 4t + 3 and 16 further of A's fragment.
Layout matrix_rows() { return {{{2, 4, 4, 4}, {2, 2}}, {{64, 4 * 64, 0, 16}, {2 * 64, 16 * 64}}}; }

Support check_tile(const WgmmaAtom& atom, const Layout& tile) {
  if (atom.a_source != OperandSource::registers) return refuse("{} reads A from shared memory", atom.name);
  if (bits(atom.a) != 32 && bits(atom.a) != 8) {
    return refuse("{}: fragments have elements of 8 or 32 bits, {} has {}", atom.name, name(atom.a), bits(atom.a));
  }
  for (const auto& [mode, extent] : {std::pair{0, atom.m}, {1, atom.k}}) {
    if (const std::int64_t has = layout::size(tile.mode(mode)); has % extent != 0)
      return refuse("{}: an instruction takes {}, which do not divide the tile's {}", atom.name, extent, has);
  }
  return {};
}

/// `count` parts of a mode, each `extent` wide.
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
      return refuse("instructions along K are multiples of the {} bytes of a {} apart, got {}", base_alignment(*mode),
                    name(*mode), bytes);
  }
  const Turn turn = loads.pairs_rows ? kTurnOfBytes : kTurnOfWords;
  loads.turned_threads = turn.threads;
  loads.turned_loads = turn.loads;
  return loads;
}

int bank_conflicts(const FragmentLoads& loads, std::int64_t mn) {
  const auto offset = [&](int thread, int load) {
    const int turn = (thread & loads.turned_threads) != 0 ? loads.turned_loads : 0;
    return loads.offset(thread, load ^ turn, mn) * loads.element_bits / 8;
  };
  const bool is_by_matrix = loads.element_bits == 8;
  const int count = is_by_matrix ? 1 : static_cast<int>(layout::size(loads.offset.layout.mode(1)));
  int conflicts = 0;
  for (int load = 0; load < count; ++load) {
    for (int warp = 0; warp < kThreads; warp += kWarp) {
      std::vector<std::int64_t> offsets;
      for (int lane = 0; lane < kWarp; ++lane) {
        offsets.push_back(offset(warp + lane, is_by_matrix ? lane / kMatrixRows : load));
      }
      conflicts += bank_conflicts(offsets, is_by_matrix ? kMatrixRowBytes : kWordBytes);
    }
  }
  return conflicts;
}

}  // namespace tilewright::arch
