#include "tilewright/plan/sm90/subtile.hpp"

#include "tilewright/arch/wgmma_smem.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/plan/sm90/operand.hpp"

namespace tilewright::plan {
namespace {

constexpr int kSectorBytes = 32;  // L2 is written in sectors
// A tile that no panel of whole sectors divides is one panel up to this width. 64 rows of it take 16 KB of each buffer.
constexpr int kWidestPackedBytes = 256;
constexpr int kPartAlignment =
    1024;  // of a panel with a swizzle of 128 bytes; device/tilewright/epilogue/tma_output.cuh

arch::Major major_of(bool is_row_major) { return is_row_major ? arch::Major::k : arch::Major::mn; }

arch::SwizzleMode panel_swizzle(int element_bytes, bool is_row_major, int panel_columns) {
  return arch::widest_swizzle(major_of(is_row_major), 8 * element_bytes, kWgmmaM, panel_columns).value_or_throw();
}

/// Whether the rows of a panel are as wide as no swizzle. TMA then expects them packed one after another.
bool is_packed(int element_bytes, bool is_row_major, int panel_columns) {
  return is_row_major &&
         arch::width_bytes(panel_swizzle(element_bytes, is_row_major, panel_columns)) < panel_columns * element_bytes;
}

/// The widest number of columns up to `most` that divides `tile_columns` and is a multiple of 8; 0 if there is none.
int widest_divisor(int tile_columns, int most) {
  for (int columns = most / 8 * 8; columns >= 8; columns -= 8) {
    if (tile_columns % columns == 0) return columns;
  }
  return 0;
}

/// Half of the tile's columns if TMA stores them as packed rows of an odd multiple of 16 bytes; else 0.
int packed_half(const OutputElements& elements, int tile_columns) {
  constexpr int kNarrowestPackedBytes = 64;  // narrower rows would gain nothing over sectors
  const int bytes = tile_columns / 2 * elements.narrowest();
  const bool is_odd = tile_columns % 16 == 0 && bytes % kTmaBytes == 0 && bytes / kTmaBytes % 2 == 1;
  const bool fits = bytes >= kNarrowestPackedBytes && bytes <= kWidestPackedBytes;
  const bool is_possible = elements.stores_by_tma && elements.widest() == elements.narrowest();
  return is_odd && fits && is_possible ? tile_columns / 2 : 0;
}

/// The most columns of a subtile whose buffers fit in `most_bytes`.
int most_columns_in(const OutputElements& elements, int most_bytes) {
  int columns = most_bytes / (kOutputBuffers * static_cast<int>(kWgmmaM) * elements.bytes_per_element());
  while (columns > 0 && EpilogueSubtile{columns, 1}.bytes(elements) > most_bytes) --columns;
  return columns;
}

}  // namespace

bool stores_by_tma(const op::TensorSignature& d) {
  return !d.is_pointer_array && d.folded_modes == 0 && d.alignment * bytes(d.element) >= kTmaBytes;
}

TmaOutputs tma_outputs(const op::GemmSignature& operands, int split_k) {
  TmaOutputs found;
  const op::Epilogue& epilogue = operands.epilogue;
  if (epilogue.outputs.empty() || split_k > 1 || !stores_by_tma(operands.d) || epilogue.is_gated()) return found;
  if (op::differs_in_m(operands.groups) || op::differs_in_n(operands.groups)) return found;
  const auto contiguous =
      operands.d.layout == op::MatrixLayout::row_major ? op::ContiguousMode::columns : op::ContiguousMode::rows;
  const std::size_t sources = epilogue.tensors().size();
  for (std::size_t i = 0; i < epilogue.outputs.size() && found.count < TmaOutputs::kMost; ++i) {
    const op::EpilogueTensorSignature& tensor = operands.tensors[sources + i];
    const bool is_aligned = tensor.alignment * bytes(tensor.element) >= kTmaBytes;
    if (epilogue.outputs[i].reduction != op::Reduction::none || tensor.contiguous != contiguous || !is_aligned)
      continue;
    const auto number = static_cast<std::size_t>(found.count++);
    found.numbers[number] = static_cast<int>(i);
    found.element_bytes[number] = bytes(tensor.element);
  }
  return found;
}

int OutputElements::narrowest() const {
  int narrowest = std::min(c_bytes, d_bytes);
  for (int i = 0; i < others.count; ++i)
    narrowest = std::min(narrowest, others.element_bytes[static_cast<std::size_t>(i)]);
  return narrowest;
}

int OutputElements::buffer_bytes(int elements) const {
  const int first = elements * std::max(c_bytes, d_bytes);
  return others.count == 0 ? first : round_up(first, kPartAlignment) + bytes_of_others(elements);
}

int OutputElements::bytes_of_others(int elements) const {
  int sum = 0;
  for (const int element_bytes : others.element_bytes) sum += round_up(elements * element_bytes, kPartAlignment);
  return sum;
}

int EpilogueSubtile::elements() const { return panels * static_cast<int>(kWgmmaM) * panel_columns; }

int EpilogueSubtile::bytes(const OutputElements& tensors) const {
  return kOutputBuffers * tensors.buffer_bytes(elements());
}

int EpilogueSubtile::count(int tile_columns) const { return ceil_div(tile_columns / panel_columns, panels); }

EpilogueSubtile epilogue_subtile(const OutputElements& elements, int tile_columns, int most_bytes) {
  const int widest = kMaxRowBytes / elements.widest();  // 64 rows of this width take 8 KB
  if (!elements.d_is_row_major) return {widest_divisor(tile_columns, widest), 1};
  const int most_columns = most_columns_in(elements, most_bytes);
  const int sector = std::max(8, kSectorBytes / elements.narrowest());  // columns
  for (int columns = widest; columns >= sector; columns /= 2) {
    if (tile_columns % columns != 0) continue;
    const int half = columns == sector ? packed_half(elements, tile_columns) : 0;
    if (half != 0 && half <= most_columns) return {half, 1};
    const int most = elements.widest_panels() * widest;
    return {columns, std::max(std::min({most, tile_columns, most_columns}) / columns, 1)};
  }
  if (tile_columns * elements.narrowest() % kTmaBytes != 0 || tile_columns % 8 != 0) return {};
  if (tile_columns * elements.narrowest() <= kWidestPackedBytes) return {tile_columns, 1};
  const int narrow = std::max(8, kTmaBytes / elements.narrowest());
  return {narrow, std::max(std::min({widest, tile_columns, most_columns}) / narrow, 1)};
}

int wanted_output_bytes(const OutputElements& elements, int tile_columns) {
  const EpilogueSubtile narrowest = epilogue_subtile(elements, tile_columns, 0);
  const bool has_narrow_panels = narrowest.panel_columns * elements.narrowest() == kSectorBytes;
  const int half = elements.d_is_row_major && has_narrow_panels ? packed_half(elements, tile_columns) : 0;
  return half != 0 ? EpilogueSubtile{half, 1}.bytes(elements) : narrowest.bytes(elements);
}

int line_bytes(const OutputElements& elements, const EpilogueSubtile& subtile, int tile_columns) {
  const int row = std::min(subtile.panels * subtile.panel_columns, tile_columns);
  return (elements.d_is_row_major ? row : static_cast<int>(kWgmmaM)) * elements.d_bytes;
}

PanelBoxes panel_boxes(int element_bytes, bool is_row_major, int panel_columns) {
  if (is_row_major) return {.line = panel_columns, .lines = kWgmmaM, .boxes = 1};
  const int line = arch::width_bytes(panel_swizzle(element_bytes, is_row_major, panel_columns)) / element_bytes;
  return {.line = line, .lines = panel_columns, .boxes = kWgmmaM / line};
}

TileStores tile_stores(const EpilogueSubtile& subtile, const OutputElements& elements, int atoms, int tile_columns) {
  const int panels = tile_columns / subtile.panel_columns;
  TileStores stores;
  stores.boxes = atoms * panels * panel_boxes(elements.d_bytes, elements.d_is_row_major, subtile.panel_columns).boxes;
  if (!elements.d_is_row_major) return stores;
  if (subtile.panel_columns * elements.d_bytes % kSectorBytes != 0) stores.partial_sectors = panels;
  return stores;
}

layout::ComposedLayout panel_layout(int element_bytes, bool is_row_major, int panel_columns) {
  using layout::IntTuple;
  if (is_packed(element_bytes, is_row_major, panel_columns)) {
    const layout::Layout rows(IntTuple{kWgmmaM, panel_columns}, IntTuple{panel_columns * element_bytes, element_bytes});
    return {{}, 0, rows};
  }
  const layout::ComposedLayout elements =
      arch::smem_tile({.major = major_of(is_row_major),
                       .mode = panel_swizzle(element_bytes, is_row_major, panel_columns),
                       .element_bits = 8 * element_bytes,
                       .mn = kWgmmaM,
                       .k = panel_columns})
          .value_or_throw();
  return layout::composition(layout::Layout(layout::size(elements), element_bytes), elements);
}

}  // namespace tilewright::plan
