// Thread-value layouts of tiled copies. A copy is tiled by its register side; the address side follows from the atom.
#include "tilewright/arch/tiled_copy.hpp"

#include <fmt/format.h>

#include "tilewright/base/error.hpp"

namespace tilewright::arch {
namespace {

using layout::concatenate;
using layout::IntTuple;
using layout::Layout;
using layout::Tiler;

/// The layout of the side that is in registers. For copies of one thread both sides are equal.
const Layout& register_side(const CopyAtom& atom) {
  const bool writes_shared = atom.kind == CopyKind::stmatrix || atom.kind == CopyKind::stmatrix_trans;
  return writes_shared ? atom.src : atom.dst;
}

/// (thread, (value, instruction)) of `side` -> offset in the tile. `side` and `registers` are in elements.
Layout layout_tv(const Layout& tv, const Layout& registers, const Layout& side) {
  const Layout divided = layout::zipped_divide(
      tv, Tiler{Layout(layout::size(registers.mode(0)), 1), Layout(layout::size(registers.mode(1)), 1)});
  const Layout register_tv = divided.mode(0);  // (thread, value) of one instruction
  const Layout target =
      side == registers ? register_tv
                        : layout::composition(register_tv, layout::composition(layout::right_inverse(registers), side));
  const Layout atoms = divided.mode(1);
  const Layout threads = concatenate({target.mode(0), atoms.mode(0)});
  return concatenate(
      {layout::coalesce(threads), concatenate({layout::coalesce(target.mode(1)), layout::coalesce(atoms.mode(1))})});
}

Layout tidfrg(const TiledCopy& copy, const Layout& tensor, const Layout& tile_tv) {
  const Layout divided = layout::zipped_divide(tensor, layout::make_tiler(copy.tile));
  const Layout tv = layout::composition(divided.mode(0), tile_tv);
  return concatenate({tv.mode(0), tv.mode(1), divided.mode(1)});
}

Partition partition(const TiledCopy& copy, const Layout& tensor, std::int64_t thread, const Layout& tile_tv) {
  const Layout divided = tidfrg(copy, tensor, tile_tv);
  if (thread < 0 || thread >= layout::size(divided.mode(0)))
    throw InvalidArgument(
        fmt::format("no thread {}: there are {} in a tiled {}", thread, layout::size(divided.mode(0)), copy.atom.name));
  return {concatenate({divided.mode(1), divided.mode(2)}), divided.mode(0)(thread)};
}

Support check_compact(const char* what, const Layout& layout) {
  if (layout::size(layout::right_inverse(layout)) == layout::size(layout)) return {};
  return refuse("{} must be a bijection onto [0, {}), got {}", what, layout::size(layout), layout::to_string(layout));
}

Support check_divides(const CopyAtom& atom, int element_bits, const Layout& registers, const Layout& tv) {
  for (int mode = 0; mode < 2; ++mode) {
    const std::int64_t unit = layout::size(registers.mode(mode));
    const std::int64_t extent = layout::size(tv.mode(mode));
    if (extent % unit != 0)
      return refuse("{} has {} {} of {}-bit elements, which do not divide {}", atom.name, unit,
                    mode == 0 ? "threads" : "values", element_bits, extent);
  }
  return {};
}

}  // namespace

Result<TiledCopy> make_tiled_copy(const CopyAtom& atom, int element_bits, const Layout& threads, const Layout& values) {
  Support support = check_compact("threads", threads);
  if (support) support = check_compact("values", values);
  if (!support) return Refusal{support.reason()};
  const Layout tile = layout::raked_product(threads, values);  // (m, n) -> thread + threads * value
  const Layout tv = layout::composition(layout::right_inverse(tile),
                                        layout::make_layout({layout::size(threads), layout::size(values)}));
  return make_tiled_copy(atom, element_bits, tv, product_each(tile.shape()));
}

Result<TiledCopy> make_tiled_copy(const CopyAtom& atom, int element_bits, const Layout& tv, const IntTuple& tile) {
  if (tv.rank() != 2) return refuse("a tiled copy must have modes (thread, value), got {}", layout::to_string(tv));
  try {
    const Layout registers = layout::upcast(register_side(atom), element_bits);
    const Support support = check_divides(atom, element_bits, registers, tv);
    if (!support) return Refusal{support.reason()};
    return TiledCopy{atom,
                     element_bits,
                     tv,
                     layout_tv(tv, registers, layout::upcast(atom.src, element_bits)),
                     layout_tv(tv, registers, layout::upcast(atom.dst, element_bits)),
                     tile};
  } catch (const InvalidArgument& error) {
    return refuse("{} cannot copy {}-bit elements of {}: {}", atom.name, element_bits, layout::to_string(tv),
                  error.what());
  }
}

Result<TiledCopy> make_tiled_copy_a(const CopyAtom& atom, int element_bits, const TiledMma& mma) {
  return make_tiled_copy(atom, element_bits, layout_a_tv(mma), IntTuple{tile_extent(mma, 0), tile_extent(mma, 2)});
}
Result<TiledCopy> make_tiled_copy_b(const CopyAtom& atom, int element_bits, const TiledMma& mma) {
  return make_tiled_copy(atom, element_bits, layout_b_tv(mma), IntTuple{tile_extent(mma, 1), tile_extent(mma, 2)});
}
Result<TiledCopy> make_tiled_copy_c(const CopyAtom& atom, int element_bits, const TiledMma& mma) {
  return make_tiled_copy(atom, element_bits, layout_c_tv(mma), IntTuple{tile_extent(mma, 0), tile_extent(mma, 1)});
}

Layout tidfrg_s(const TiledCopy& copy, const Layout& tensor) { return tidfrg(copy, tensor, copy.s_tv); }
Layout tidfrg_d(const TiledCopy& copy, const Layout& tensor) { return tidfrg(copy, tensor, copy.d_tv); }

Partition partition_s(const TiledCopy& copy, const Layout& tensor, std::int64_t thread) {
  return partition(copy, tensor, thread, copy.s_tv);
}
Partition partition_d(const TiledCopy& copy, const Layout& tensor, std::int64_t thread) {
  return partition(copy, tensor, thread, copy.d_tv);
}

}  // namespace tilewright::arch
