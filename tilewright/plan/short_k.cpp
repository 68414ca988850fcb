#include "tilewright/plan/short_k.hpp"

#include "tilewright/base/rounding.hpp"

namespace tilewright::plan {
namespace {

// 30 problems in seven types, eight kernels each, in bands of 1 to 8 tiles along both modes of D (H200, 2026-11-27;
// docs/decisions/performance_history.md). Up to kShortBytes, single lines of tiles along the lines of D took 0.74 to
// 1.01 times as long as bands of 8 across them, and 0.88 to 1 times as long as bands of 8 along them; with 2048 bytes,
// 0.99. Of 170 random problems, those with a D of less than half of L2 took as long in either order.
constexpr std::int64_t kShortBytes = 1024;
// With fewer tiles in a line of D, bands along it are as fast, and CTAs on one TPC share the operand that they read
// again: f16 65536x768x192 took 2 % less time.
constexpr std::int64_t kFewTiles = 8;
// The share of L2 for the operand that each line of tiles reads again. D passes through L2, too. With 8.4 MB of 50 MB
// lines were fastest; with 16.8 MB, f16 4096x32768x256 took 14 % longer than in bands across the lines of D.
constexpr double kShareOfL2 = 0.2;
constexpr int kBand = 8;

}  // namespace

bool has_short_k(const arch::ArchLimits& limits, const ProductShape& product) {
  return product.k * product.element_bytes <= kShortBytes && 2 * product.bytes_of_d > limits.l2_bytes;
}

Raster raster_of_short_k(const arch::ArchLimits& limits, const ProductShape& product) {
  const auto fits = [&](std::int64_t lines) {
    const auto bytes = static_cast<double>(lines * product.k * product.element_bytes);
    return bytes <= kShareOfL2 * static_cast<double>(limits.l2_bytes);
  };
  const bool along_n = product.d_is_row_major;
  const std::int64_t line = along_n ? product.n : product.m, others = along_n ? product.m : product.n;
  if (!fits(line)) return {kBand, fits(others) ? !along_n : along_n};
  return {ceil_div(line, along_n ? product.tile.n : product.tile.m) > kFewTiles ? 1 : kBand, along_n};
}

}  // namespace tilewright::plan
