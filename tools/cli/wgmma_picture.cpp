#include "tools/cli/wgmma_picture.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "tilewright/arch/smem_descriptor.hpp"
#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/layout/composed_layout.hpp"

namespace tilewright::cli {
namespace {

using arch::Major;
using layout::ComposedLayout;
using layout::IntTuple;

constexpr int core_rows = 8;
constexpr int core_row_bits = 128;
constexpr int instruction_k_bits = 256;
constexpr int instruction_m = 64;
constexpr int instruction_most_n = 256;

int extent(const ComposedLayout& tile, int mode) { return static_cast<int>(layout::product(tile.shape()[mode])); }

// The contiguous mode of the tile.
Result<Major> major_of(const ComposedLayout& tile) {
  if (extent(tile, 1) > 1 && tile(0, 1) == tile(0, 0) + 1) return Major::k;
  if (extent(tile, 0) > 1 && tile(1, 0) == tile(0, 0) + 1) return Major::mn;
  return refuse("neither mode of {} is contiguous", layout::to_string(tile));
}

// The extents that one wgmma reads.
struct Instruction {
  int mn;
  int k;
};

Result<Instruction> instruction_shape(const ComposedLayout& tile, WgmmaOperand operand, int bits) {
  const Instruction one{std::min(extent(tile, 0), operand == WgmmaOperand::a ? instruction_m : instruction_most_n),
                        instruction_k_bits / bits};
  if (extent(tile, 0) % one.mn != 0 || extent(tile, 1) % one.k != 0)
    return refuse("the instruction's {}x{} elements do not divide the tile of {}x{}", one.mn, one.k, extent(tile, 0),
                  extent(tile, 1));
  return one;
}

// The arrow from the first core matrix to the nearest one along a side whose offset is `bytes`; nullopt if there is
// none.
std::optional<layout::Dimension> dimension(const ComposedLayout& drawn, const layout::TileView& view, bool along_rows,
                                           std::int64_t bytes, std::string_view name) {
  const int step = along_rows ? view.rows : view.columns;
  const int cells = extent(drawn, along_rows ? 0 : 1) / step;
  for (int cell = 1; cell < cells; ++cell) {
    const std::int64_t offset = along_rows ? drawn(cell * step, 0) : drawn(0, cell * step);
    if (layout::checked_product(offset - drawn(0, 0), view.bits) / 8 == bytes)
      return layout::Dimension{along_rows, 0, cell, fmt::format("{} {} B", name, bytes)};
  }
  return std::nullopt;
}

void add_dimensions(layout::Picture& picture, const ComposedLayout& drawn, const layout::TileView& view,
                    const arch::SmemDescriptor& descriptor) {
  const std::pair<std::string_view, std::int64_t> named[] = {{"LBO", descriptor.leading_byte_offset},
                                                             {"SBO", descriptor.stride_byte_offset}};
  for (const auto& [name, bytes] : named) {
    for (const bool along_rows : {false, true}) {
      if (auto found = dimension(drawn, view, along_rows, bytes, name)) {
        picture.dimensions.push_back(*std::move(found));
        break;
      }
    }
  }
}

}  // namespace

Result<layout::Picture> wgmma_picture(const ComposedLayout& tile, WgmmaOperand operand, int bits,
                                      const std::string& title) {
  if (bits != 8 && bits != 16 && bits != 32) return refuse("operands of wgmma have 8, 16 or 32 bits, got {}", bits);
  if (tile.rank() != 2)
    return refuse("an operand must be a layout of rank 2, (mn, k), got {}", layout::to_string(tile));
  const Result<Major> major = major_of(tile);
  if (!major) return major.refusal();
  const Result<Instruction> one = instruction_shape(tile, operand, bits);
  if (!one) return one.refusal();
  const ComposedLayout read = composition(tile, layout::make_tiler(IntTuple{one->mn, one->k}));
  const Result<arch::SmemDescriptor> descriptor = arch::make_descriptor(*major, read, bits);
  if (!descriptor) return descriptor.refusal();

  const bool is_a = operand == WgmmaOperand::a;
  const int row = core_row_bits / bits;
  const int core_mn = *major == Major::k ? core_rows : row;
  const int core_k = *major == Major::k ? row : core_rows;
  const layout::TileView view{is_a ? core_mn : core_k, is_a ? core_k : core_mn, bits, is_a ? one->mn : one->k,
                              is_a ? one->k : one->mn};
  const ComposedLayout drawn = is_a ? tile : layout::select(tile, {1, 0});
  Result<layout::Picture> picture = layout::tile_picture(drawn, view, title);
  if (!picture) return picture;
  layout::Picture result = *std::move(picture);
  add_dimensions(result, drawn, view, *descriptor);
  result.notes.push_back(fmt::format("{}, {} of {} bits; cells are core matrices of 8 x 16 bytes",
                                     is_a ? "A: M x K" : "B: K x N", arch::name(*major), bits));
  result.notes.push_back(fmt::format("descriptor 0x{:016x}: {}", arch::encode(*descriptor), to_string(*descriptor)));
  if (extent(tile, 1) > one->k)
    result.notes.push_back(fmt::format("tinted: the first {} of k; the next are at +{} bytes", one->k,
                                       layout::checked_product(tile(0, one->k) - tile(0, 0), bits) / 8));
  return result;
}

}  // namespace tilewright::cli
