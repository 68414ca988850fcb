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
// Of lane / 4, the row of 8, and of the register, whose second bit is the second half of K.
constexpr int kUpperRows = 16;
constexpr int kOtherHalfOfK = 2;

Support check_tile(const WgmmaAtom& atom, const Layout& tile) {
  if (atom.a_source != OperandSource::registers) return refuse("{} reads A from shared memory", atom.name);
  if (bits(atom.a) != 8 * kWordBytes) {
    return refuse("{}: fragments are loaded by words of one element, {} has {} bits", atom.name, name(atom.a),
                  bits(atom.a));
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
  const Layout fragment = layout::composition(tile, instruction->a_tv);
  loads.offset = {smem.swizzle, smem.offset,
                  layout::concatenate({fragment.mode(0), fragment.mode(1), parts(mn, atom.m)})};
  loads.step = parts(k, atom.k);
  for (std::int64_t i = 0; i < layout::size(loads.step); ++i) {
    if (const std::int64_t bytes = loads.step(i) * bits(atom.a) / 8; bytes % base_alignment(*mode) != 0)
      return refuse("instructions along K are multiples of the {} bytes of a {} apart, got {}", base_alignment(*mode),
                    name(*mode), bytes);
  }
  loads.turned_threads = kUpperRows;
  loads.turned_loads = kOtherHalfOfK;
  return loads;
}

int bank_conflicts(const FragmentLoads& loads, std::int64_t mn) {
  int conflicts = 0;
  for (int load = 0; load < layout::size(loads.offset.layout.mode(1)); ++load) {
    for (int warp = 0; warp < kThreads / kWarp; ++warp) {
      std::vector<std::int64_t> offsets;
      for (int lane = 0; lane < kWarp; ++lane) {
        const int turn = (lane & loads.turned_threads) != 0 ? loads.turned_loads : 0;
        offsets.push_back(loads.offset(warp * kWarp + lane, load ^ turn, mn) * loads.element_bits / 8);
      }
      conflicts += bank_conflicts(offsets, kWordBytes);
    }
  }
  return conflicts;
}

}  // namespace tilewright::arch
