// Swizzle atoms in bits, recast to elements; tiles as products of atoms. Source: PTX ISA, "Shared Memory Matrix Layout"
// and "Swizzling Modes".
#include "tilewright/arch/wgmma_smem.hpp"

#include <fmt/format.h>

#include <array>

#include "tilewright/base/power_of_two.hpp"
#include "tilewright/layout/composed_layout.hpp"

namespace tilewright::arch {
namespace {

using layout::ComposedLayout;
using layout::Layout;

constexpr std::array kWidestFirst{SwizzleMode::bytes_128, SwizzleMode::bytes_64, SwizzleMode::bytes_32,
                                  SwizzleMode::none};
constexpr int kAtomRows = 8;

/// The swizzle of bit offsets.
layout::Swizzle bit_swizzle(SwizzleMode mode) { return downcast(byte_swizzle(mode), 8); }

Support check_element(int element_bits) {
  if (element_bits > 128 || !is_power_of_two(element_bits))
    return refuse("elements in shared memory must have 1, 2, 4, ... or 128 bits, got {}", element_bits);
  return {};
}

/// Elements in a row of the atom.
std::int64_t width(SwizzleMode mode, int element_bits) { return width_bytes(mode) * 8 / element_bits; }

}  // namespace

std::string_view name(SwizzleMode mode) {
  constexpr std::array<std::string_view, 4> names{"no swizzle", "32-byte swizzle", "64-byte swizzle",
                                                  "128-byte swizzle"};
  return names[static_cast<std::size_t>(mode)];
}

std::string_view name(Major major) { return major == Major::k ? "K-major" : "MN-major"; }

int width_bytes(SwizzleMode mode) { return 16 << static_cast<int>(mode); }

int base_alignment(SwizzleMode mode) { return kAtomRows * width_bytes(mode); }

layout::Swizzle byte_swizzle(SwizzleMode mode) { return {static_cast<int>(mode), 4, 3}; }

Result<SwizzleMode> swizzle_mode(const layout::Swizzle& swizzle, int element_bits) {
  const Support element = check_element(element_bits);
  if (!element) return Refusal{element.reason()};
  if (swizzle.bits() == 0) return SwizzleMode::none;
  for (const SwizzleMode mode : kWidestFirst) {
    if (swizzle == upcast(bit_swizzle(mode), element_bits)) return mode;
  }
  return refuse("{} of {}-bit elements is not one of the modes Sw<0..3,4,3> of bytes", layout::to_string(swizzle),
                element_bits);
}

Result<ComposedLayout> smem_atom(Major major, SwizzleMode mode, int element_bits) {
  const Support element = check_element(element_bits);
  if (!element) return Refusal{element.reason()};
  const std::int64_t row_bits = 8 * width_bytes(mode);
  const Layout bits =
      major == Major::k ? Layout({kAtomRows, row_bits}, {row_bits, 1}) : Layout({row_bits, kAtomRows}, {1, row_bits});
  return upcast(ComposedLayout{bit_swizzle(mode), 0, bits}, element_bits);
}

Result<SwizzleMode> widest_swizzle(Major major, int element_bits, std::int64_t mn, std::int64_t k, int max_row_bytes) {
  const Support element = check_element(element_bits);
  if (!element) return Refusal{element.reason()};
  const std::int64_t along = major == Major::k ? k : mn;
  const std::int64_t across = major == Major::k ? mn : k;
  if (across < 1 || across % kAtomRows != 0)
    return refuse("a {} tile must have a multiple of {} rows, got {} of {}x{}", name(major), kAtomRows, across, mn, k);
  for (const SwizzleMode mode : kWidestFirst) {
    if (width_bytes(mode) <= max_row_bytes && along > 0 && along % width(mode, element_bits) == 0) return mode;
  }
  return refuse(
      "the rows of a {} tile of {}-bit elements must be a multiple of {} elements (16 bytes), got {} of {}x{}",
      name(major), element_bits, width(SwizzleMode::none, element_bits), along, mn, k);
}

Result<ComposedLayout> smem_tile(const SmemTile& tile) {
  const Support element = check_element(tile.element_bits);
  if (!element) return Refusal{element.reason()};
  const std::int64_t row = width(tile.mode, tile.element_bits);
  const bool k_major = tile.major == Major::k;
  const std::int64_t atom_mn = k_major ? kAtomRows : row;
  const std::int64_t atom_k = k_major ? row : kAtomRows;
  if (tile.mn < 1 || tile.k < 1 || tile.mn % atom_mn != 0 || tile.k % atom_k != 0)
    return refuse("a {} tile with {} of {}-bit elements consists of {}x{} atoms, got {}x{}", name(tile.major),
                  name(tile.mode), tile.element_bits, atom_mn, atom_k, tile.mn, tile.k);

  const std::int64_t atom = atom_mn * atom_k;
  const bool mn_first = tile.order.value_or(k_major ? AtomOrder::mn_first : AtomOrder::k_first) == AtomOrder::mn_first;
  const std::int64_t next_mn = mn_first ? atom : atom * (tile.k / atom_k);
  const std::int64_t next_k = mn_first ? atom * (tile.mn / atom_mn) : atom;
  return ComposedLayout{upcast(bit_swizzle(tile.mode), tile.element_bits), 0,
                        Layout({{atom_mn, tile.mn / atom_mn}, {atom_k, tile.k / atom_k}},
                               {{k_major ? row : 1, next_mn}, {k_major ? 1 : row, next_k}})};
}

ComposedLayout smem_stages(const ComposedLayout& tile, std::int64_t stages) {
  return {tile.swizzle, tile.offset, layout::append(tile.layout, Layout(stages, layout::size(tile.layout)))};
}

}  // namespace tilewright::arch
