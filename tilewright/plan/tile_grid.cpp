#include "tilewright/plan/tile_grid.hpp"

#include <algorithm>
#include <bit>

#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"

namespace tilewright::plan {

Divisor::Divisor(std::int64_t divisor) {
  TILEWRIGHT_CHECK(divisor >= 1 && divisor < std::int64_t{1} << 31, "a divisor is from 1 to 2^31 - 1, got {}", divisor);
  const auto value = static_cast<std::uint64_t>(divisor);
  shift = 31 + static_cast<std::uint32_t>(std::bit_width(value - 1));
  multiplier = static_cast<std::uint32_t>(ceil_div(std::uint64_t{1} << shift, value));
}

std::int64_t Divisor::quotient(std::int64_t dividend) const {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(dividend) * multiplier >> shift);
}

std::int64_t group_width(const Raster& raster, std::int64_t tiles_m, std::int64_t tiles_n) {
  const std::int64_t across = raster.along_n ? tiles_m : tiles_n;
  constexpr int kFew = 6, kNarrow = 4;  // as Raster of scheduler/raster.cuh
  return raster.width == 8 && across < kFew ? kNarrow : raster.width;
}

TileSpan span_of_first(const Raster& raster, std::int64_t tiles_m, std::int64_t tiles_n, std::int64_t count) {
  const std::int64_t across = raster.along_n ? tiles_m : tiles_n, along = raster.along_n ? tiles_n : tiles_m;
  count = std::min(count, tiles_m * tiles_n);
  if (count == 0) return {};
  const std::int64_t width = std::min(group_width(raster, tiles_m, tiles_n), across);
  const std::int64_t group = width * along;
  const std::int64_t places = count / group * width + std::min(count % group, width);
  const std::int64_t lines = std::min(ceil_div(count, width), along);
  return raster.along_n ? TileSpan{places, lines} : TileSpan{lines, places};
}

TileGrid tile_grid(const Raster& raster, std::int64_t tiles_m, std::int64_t tiles_n, std::int64_t groups) {
  const auto divisor = [](std::int64_t value) { return Divisor(std::max<std::int64_t>(value, 1)); };
  const std::int64_t along = raster.along_n ? tiles_n : tiles_m;
  const std::int64_t across = raster.along_n ? tiles_m : tiles_n;
  const std::int64_t widest = group_width(raster, tiles_m, tiles_n);
  return {.tiles_m = static_cast<std::int32_t>(tiles_m),
          .tiles_n = static_cast<std::int32_t>(tiles_n),
          .groups = static_cast<std::int32_t>(groups),
          .matrix = divisor(tiles_m * tiles_n),
          .group = divisor(widest * along),
          .narrow = divisor(across % widest)};
}

}  // namespace tilewright::plan
