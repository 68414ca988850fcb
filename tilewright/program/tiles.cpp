#include "tilewright/program/tiles.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/error.hpp"
#include "tilewright/program/roles.hpp"

namespace tilewright::program {
namespace {

/// The number in a register. Numbers are printed where they are used: as registers, the divisions of the index of a
/// tile are computed once for each tile, and not in the loop over k.
Number in_register(KernelBuilder& k, const Number& number) {
  if (number.is_static()) return number;
  const Value value =
      k.instruction("mov.b32 $0, $1;", {output(RegisterType::b32), program::number(number)}, Effect::state).front();
  return k.number(value, std::min(number.upper() + 1, layout::NumberScope::kMaxIndex),
                  std::max<std::int64_t>(number.divisor(), 1));
}

/// `max_groups`, if a grid may have as many groups of CTAs.
int checked_groups(int max_groups) {
  if (max_groups < 1) throw InvalidArgument(fmt::format("a grid has at least 1 group of CTAs, got {}", max_groups));
  return max_groups;
}

}  // namespace

TileOrder::TileOrder(KernelBuilder& k, const Number& m, const Number& n, const Number& batch,
                     const plan::Raster& raster)
    : kernel_(&k), raster_(raster) {
  if (raster.width < 1) throw InvalidArgument(fmt::format("a raster has a width of at least 1, got {}", raster.width));
  const auto& [x, y, z] = k.cluster();
  const Number groups_m = k.computed("groups_m", ceil_div(m, x)), groups_n = k.computed("groups_n", ceil_div(n, y));
  groups_along_ = raster.along_n ? groups_n : groups_m;
  groups_across_ = raster.along_n ? groups_m : groups_n;
  of_matrix_ = k.computed("groups_of_matrix", groups_m * groups_n);
  groups_ = k.computed("groups", of_matrix_ * batch);
  of_band_ = k.computed("groups_of_band", groups_along_ * raster.width);
}

TileIndex TileOrder::tile(const Number& group) const {
  KernelBuilder& k = *kernel_;
  const auto& [cluster_m, cluster_n, one] = k.cluster();
  const Number batch = group / of_matrix_;
  const Number in_matrix = group % of_matrix_;
  const Number first = in_matrix / of_band_ * raster_.width;
  const Number in_band = in_matrix % of_band_;
  // The last band may be narrower.
  const Number left = assume(k, groups_across_ - first, groups_across_.upper() + 1);
  const Number width = maximum(minimum(left, raster_.width), 1);
  const Number along = in_band / width, across = first + in_band % width;
  return {
      .m = in_register(k, (raster_.along_n ? across : along) * cluster_m + k.cluster_rank() % cluster_m),
      .n = in_register(k, (raster_.along_n ? along : across) * cluster_n + k.cluster_rank() / cluster_m % cluster_n),
      .batch = in_register(k, batch)};
}

PersistentTiles::PersistentTiles(KernelBuilder& k, const Number& m, const Number& n, const Number& batch,
                                 const plan::Raster& raster, int max_groups)
    : kernel_(&k), order_(k, m, n, batch, raster) {
  const auto& [x, y, z] = k.cluster();
  k.set_grid(minimum(order_.groups(), checked_groups(max_groups)) * x, y, z);
}

void PersistentTiles::for_each(const std::function<void(const TileIndex&)>& body) const {
  body(begin());
  end();
}

TileIndex PersistentTiles::begin() const {
  KernelBuilder& k = *kernel_;
  const int groups_of_m = k.cluster()[0];
  return order_.tile(k.begin_loop(k.block() / groups_of_m, order_.groups(), k.blocks() / groups_of_m));
}

StreamedTiles::StreamedTiles(KernelBuilder& k, const TileOrder& order, const Number& steps, int max_ctas)
    : kernel_(&k), order_(order), steps_(steps) {
  const auto& [x, y, z] = k.cluster();
  if (x * y * z != 1) {
    throw InvalidArgument(
        fmt::format("CTAs that share tiles are no clusters, the kernel has clusters of {}x{}x{}", x, y, z));
  }
  all_steps_ = k.computed("all_steps", order_.groups() * steps);
  ctas_ = k.computed("ctas", minimum(order_.groups(), checked_groups(max_ctas)));
  // At least 1, which the bounds of the quotient do not say.
  steps_of_cta_ = k.computed("steps_of_cta", maximum(all_steps_ / ctas_, 1));
  longer_ctas_ = k.computed("longer_ctas", all_steps_ % ctas_);
  k.set_grid(ctas_);
}

Number StreamedTiles::cta() const {
  KernelBuilder& k = *kernel_;
  return assume(k, k.blocks() - 1 - k.block(), ctas_.upper());
}

Number StreamedTiles::first_step_of(const Number& cta) const {
  return cta * steps_of_cta_ + minimum(cta, longer_ctas_);
}

void StreamedTiles::for_each(const Number& cta, const std::function<void(const TilePart&)>& body) const {
  body(begin(cta));
  end();
}

TilePart StreamedTiles::begin(const Number& cta) const {
  KernelBuilder& k = *kernel_;
  const std::int64_t count = all_steps_.upper();
  const Number first = in_register(k, assume(k, first_step_of(cta), count));
  const Number end = in_register(k, assume(k, first_step_of(cta + 1), count + 1));
  const Number last = assume(k, end - 1, count);
  const Number tile = k.begin_loop(first / steps_, last / steps_ + 1, 1);
  const Number begin_of_tile = tile * steps_, end_of_tile = begin_of_tile + steps_;
  return {.tile = order_.tile(tile),
          .first_step = assume(k, maximum(first, begin_of_tile) - begin_of_tile, steps_.upper()),
          .end_step = assume(k, minimum(end, end_of_tile) - begin_of_tile, steps_.upper() + 1)};
}

}  // namespace tilewright::program
