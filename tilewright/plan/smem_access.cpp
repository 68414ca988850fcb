#include "tilewright/plan/smem_access.hpp"

#include <algorithm>

#include "tilewright/base/error.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/print.hpp"

namespace tilewright::plan {
namespace {

using layout::Layout;

/// The bits below `block`, a power of two, that the layout's offsets have; all of them if the layout does not map bits
/// to bits.
std::int64_t bits_in_block(const Layout& layout, std::int64_t block) {
  const std::vector<std::int64_t> extents = layout::leaves(layout.shape());
  const std::vector<std::int64_t> strides = layout::leaves(layout.stride());
  std::int64_t bits = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1 || strides[i] % block == 0) continue;
    if (!is_power_of_two(extents[i]) || !is_power_of_two(strides[i])) return block - 1;
    bits |= (extents[i] - 1) * strides[i] & (block - 1);
  }
  return bits;
}

}  // namespace

void check_steps(const layout::Swizzle& swizzle, const Layout& threads, const Layout& steps) {
  const std::int64_t block = layout::size(swizzle);
  TILEWRIGHT_CHECK((bits_in_block(threads, block) & bits_in_block(steps, block)) == 0,
                   "threads {} and steps {} share bits that {} swizzles", layout::to_string(threads),
                   layout::to_string(steps), layout::to_string(swizzle));
}

TileCopy tile_copy(const layout::ComposedLayout& smem, const Layout& vectors, int threads) {
  const auto count = static_cast<int>(layout::size(vectors));
  TILEWRIGHT_CHECK(count <= threads || count % threads == 0, "{} threads do not divide {} vectors", threads, count);
  TileCopy copy;
  copy.active_threads = std::min(count, threads);
  copy.passes = std::max(count / threads, 1);
  copy.coordinates = layout::composition(vectors, Layout({copy.active_threads, copy.passes}, {1, threads}));
  copy.smem = layout::composition(smem, copy.coordinates);
  for (int pass = 1; pass < copy.passes; ++pass) {
    const std::int64_t line = layout::coordinate(copy.coordinates, {0, pass})[0].value();
    if (line == 0) continue;
    copy.line_step = static_cast<int>(line);
    break;
  }
  check_steps(smem.swizzle, copy.smem.layout.mode(0), copy.smem.layout.mode(1));
  return copy;
}

}  // namespace tilewright::plan
