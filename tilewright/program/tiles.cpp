#include "tilewright/program/tiles.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/error.hpp"
#include "tilewright/program/roles.hpp"

namespace tilewright::program {

PersistentTiles::PersistentTiles(KernelBuilder& k, const Number& m, const Number& n, const Number& batch,
                                 const plan::Raster& raster, int max_groups)
    : kernel_(&k), raster_(raster) {
  if (raster.width < 1) throw InvalidArgument(fmt::format("a raster has a width of at least 1, got {}", raster.width));
  if (max_groups < 1) throw InvalidArgument(fmt::format("a grid has at least 1 group of CTAs, got {}", max_groups));
  const auto& [x, y, z] = k.cluster();
  const Number groups_m = k.computed("groups_m", ceil_div(m, x)), groups_n = k.computed("groups_n", ceil_div(n, y));
  groups_along_ = raster.along_n ? groups_n : groups_m;
  groups_across_ = raster.along_n ? groups_m : groups_n;
  of_matrix_ = k.computed("groups_of_matrix", groups_m * groups_n);
  groups_ = k.computed("groups", of_matrix_ * batch);
  of_band_ = k.computed("groups_of_band", groups_along_ * raster.width);
  k.set_grid(minimum(groups_, max_groups) * x, y, z);
}

void PersistentTiles::for_each(const std::function<void(const TileIndex&)>& body) const {
  body(begin());
  end();
}

TileIndex PersistentTiles::begin() const {
  KernelBuilder& k = *kernel_;
  const auto& [cluster_m, cluster_n, one] = k.cluster();
  const Number group = k.begin_loop(k.block() / cluster_m, groups_, k.blocks() / cluster_m);
  const Number batch = group / of_matrix_;
  const Number in_matrix = group % of_matrix_;
  const Number first = in_matrix / of_band_ * raster_.width;
  const Number in_band = in_matrix % of_band_;
  // The last band may be narrower.
  const Number left = assume(k, groups_across_ - first, groups_across_.upper() + 1);
  const Number width = maximum(minimum(left, raster_.width), 1);
  const Number along = in_band / width, across = first + in_band % width;
  // Numbers are printed where they are used: as registers, the divisions are computed once for each tile, and not in
  // the loop over k.
  const auto once = [&](const Number& index) {
    if (index.is_static()) return index;
    const Value value =
        k.instruction("mov.b32 $0, $1;", {output(RegisterType::b32), number(index)}, Effect::state).front();
    return k.number(value, std::min(index.upper() + 1, layout::NumberScope::kMaxIndex),
                    std::max<std::int64_t>(index.divisor(), 1));
  };
  return {.m = once((raster_.along_n ? across : along) * cluster_m + k.cluster_rank() % cluster_m),
          .n = once((raster_.along_n ? along : across) * cluster_n + k.cluster_rank() / cluster_m % cluster_n),
          .batch = once(batch)};
}

}  // namespace tilewright::program
