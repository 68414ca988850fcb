#include "tilewright/program/tiles.hpp"

#include <fmt/format.h>

#include "tilewright/base/error.hpp"
#include "tilewright/program/roles.hpp"

namespace tilewright::program {

PersistentTiles::PersistentTiles(KernelBuilder& k, const Number& m, const Number& n, const Number& batch, int raster,
                                 int max_groups)
    : kernel_(&k), raster_(raster) {
  if (raster < 1) throw InvalidArgument(fmt::format("a raster has at least 1 tile column, got {}", raster));
  if (max_groups < 1) throw InvalidArgument(fmt::format("a grid has at least 1 group of CTAs, got {}", max_groups));
  const auto& [x, y, z] = k.cluster();
  groups_m_ = k.computed("groups_m", ceil_div(m, x));
  groups_n_ = k.computed("groups_n", ceil_div(n, y));
  of_matrix_ = k.computed("groups_of_matrix", groups_m_ * groups_n_);
  groups_ = k.computed("groups", of_matrix_ * batch);
  of_band_ = k.computed("groups_of_band", groups_m_ * raster);
  k.set_grid(minimum(groups_, max_groups) * (x * y * z));
}

void PersistentTiles::for_each(const std::function<void(const TileIndex&)>& body) const {
  body(begin());
  end();
}

TileIndex PersistentTiles::begin() const {
  KernelBuilder& k = *kernel_;
  const auto& [cluster_m, cluster_n, one] = k.cluster();
  const int ctas = cluster_m * cluster_n * one;
  const Number group = k.begin_loop(k.block() / ctas, groups_, k.blocks() / ctas);
  const Number batch = group / of_matrix_;
  const Number in_matrix = group % of_matrix_;
  const Number first_n = in_matrix / of_band_ * raster_;
  const Number in_band = in_matrix % of_band_;
  // The last band may be narrower.
  const Number width = maximum(minimum(assume(k, groups_n_ - first_n, groups_n_.upper() + 1), raster_), 1);
  const Number group_m = in_band / width, group_n = first_n + in_band % width;
  return {.m = group_m * cluster_m + k.cluster_rank() % cluster_m,
          .n = group_n * cluster_n + k.cluster_rank() / cluster_m,
          .batch = batch};
}

}  // namespace tilewright::program
