// The algebra of layouts. Working form: a flat list of (extent, stride) modes, first mode fastest.
#include "tilewright/layout/algebra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

struct Mode {
  std::int64_t extent = 1;
  std::int64_t stride = 0;
};
using Modes = std::vector<Mode>;

Modes flat_modes(const Layout& layout) {
  const std::vector<std::int64_t> shape = leaves(layout.shape());
  const std::vector<std::int64_t> stride = leaves(layout.stride());
  Modes modes;
  for (std::size_t i = 0; i < shape.size(); ++i) modes.push_back({shape[i], stride[i]});
  return modes;
}

/// One mode becomes an integer layout, none becomes 1:0.
Layout from_modes(const Modes& modes) {
  if (modes.empty()) return Layout(1, 0);
  if (modes.size() == 1) return Layout(modes[0].extent, modes[0].stride);
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> stride;
  for (const Mode& mode : modes) {
    shape.push_back(mode.extent);
    stride.push_back(mode.stride);
  }
  return Layout(IntTuple::tuple(shape), IntTuple::tuple(stride));
}

void append_merged(Modes& modes, Mode next) {
  if (next.extent == 1) return;
  if (!modes.empty() && modes.back().extent * modes.back().stride == next.stride) {
    modes.back().extent *= next.extent;
  } else {
    modes.push_back(next);
  }
}

Modes merged(const Modes& modes) {
  Modes result;
  for (const Mode& mode : modes) append_merged(result, mode);
  return result;
}

/// As merged, and the same function past the end too: a last extent of 1 still says where that end leads, so it is kept
/// as a mode that cannot vanish.
Modes merged_with_end(Modes modes) {
  if (!modes.empty() && modes.back().extent == 1) modes.back().extent = 2;
  return merged(modes);
}

/// The layout with each mode replaced by verb(mode, i).
template <class Verb>
Layout by_mode(const Layout& layout, int count, Verb&& verb) {
  std::vector<Layout> modes;
  for (int i = 0; i < count; ++i) modes.push_back(verb(layout.mode(i), i));
  return concatenate(modes);
}

void require_rank(const char* verb, const Layout& a, const Tiler& tiler) {
  if (tiler.modes.empty() || static_cast<int>(tiler.modes.size()) > a.rank())
    throw InvalidArgument(fmt::format("{} of {}: the tiler has {} modes, the layout {}", verb, to_string(a),
                                      tiler.modes.size(), a.rank()));
}

/// Applies verb(mode, tile) by mode; whole modes stay.
template <class Verb>
Layout tile_by_mode(const Layout& a, const Tiler& tiler, int count, Verb&& verb) {
  const int tiled = static_cast<int>(tiler.modes.size());
  return by_mode(a, count, [&](const Layout& mode, int i) {
    if (i >= tiled || !tiler.modes[static_cast<std::size_t>(i)]) return mode;
    return verb(mode, *tiler.modes[static_cast<std::size_t>(i)]);
  });
}

/// Largest sums, of each sign, of the coordinates that composition reaches in one mode of its left side.
struct Reach {
  std::int64_t up = 0;
  std::int64_t down = 0;
};

/// a o b for one layout a: composes the leaves of b one at a time and keeps what they reach together.
class Composer {
 public:
  Composer(const Layout& a, const Layout& b) : a_(a), b_(b), modes_(merged_with_end(flat_modes(a))) {
    if (modes_.empty()) modes_.push_back({1, 0});
    reach_.resize(modes_.size());
  }

  Layout compose() {
    Layout result = compose_tree(b_.shape(), b_.stride());
    check_carries();
    return result;
  }

 private:
  Layout compose_tree(const IntTuple& shape, const IntTuple& stride) {
    if (shape.is_leaf()) return compose_leaf({shape.value(), stride.value()});
    std::vector<Layout> modes;
    for (int i = 0; i < shape.rank(); ++i) modes.push_back(compose_tree(shape[i], stride[i]));
    return concatenate(modes);
  }

  Layout compose_leaf(Mode leaf) {
    if (leaf.stride == 0) return Layout(leaf.extent, 0);
    Modes result;
    Mode rest = leaf;
    for (std::size_t i = 0; i + 1 < modes_.size(); ++i) {
      const std::int64_t extent = modes_[i].extent;
      const std::int64_t step = std::abs(rest.stride);
      const std::int64_t sign = rest.stride < 0 ? -1 : 1;
      if (rest.extent > 1 && step >= extent && step % extent != 0) refuse_stride(leaf, i, step);
      const std::int64_t available = ceil_div(extent, step);
      if (available > 1 && rest.extent > 1) {
        const std::int64_t taken = std::min(available, rest.extent);
        if (rest.extent % taken != 0) refuse_shape(leaf, i, rest.extent, taken);
        if (rest.extent > taken && extent % step != 0) refuse_stride(leaf, i, step);
        append(result, i, {taken, rest.stride});
        rest.extent /= taken;
      }
      rest.stride = ceil_div(step, extent) * sign;
    }
    if (result.empty() || rest.extent > 1) append(result, modes_.size() - 1, rest);
    return from_modes(result);
  }

  void append(Modes& result, std::size_t i, Mode part) {
    result.push_back({part.extent, part.stride * modes_[i].stride});
    const std::int64_t last = (part.extent - 1) * part.stride;
    (last > 0 ? reach_[i].up : reach_[i].down) += last;
  }

  void check_carries() const {
    const auto goes = [&](std::int64_t Reach::*way) {
      return std::any_of(reach_.begin(), reach_.end(), [way](const Reach& r) { return r.*way != 0; });
    };
    if (modes_.size() > 1 && goes(&Reach::up) && goes(&Reach::down)) refuse("its strides have both signs", "carry");
    for (std::size_t i = 0; i + 1 < modes_.size(); ++i) {
      const std::int64_t reach = std::max(reach_[i].up, -reach_[i].down);
      if (reach >= modes_[i].extent)
        refuse(
            fmt::format("its modes together reach coordinate {} of mode {} of extent {}", reach, i, modes_[i].extent),
            "carry");
    }
  }

  [[noreturn]] void refuse(const std::string& why, const char* rule) const {
    throw InvalidArgument(fmt::format("composition {} o {} breaks {}: {}; the left side coalesced is {}", to_string(a_),
                                      to_string(b_), rule, why, to_string(from_modes(modes_))));
  }
  [[noreturn]] void refuse_stride(Mode leaf, std::size_t i, std::int64_t step) const {
    refuse(fmt::format("{}:{} meets mode {} of extent {} with stride {}; one must divide the other", leaf.extent,
                       leaf.stride, i, modes_[i].extent, step),
           "stride divisibility");
  }
  [[noreturn]] void refuse_shape(Mode leaf, std::size_t i, std::int64_t rest, std::int64_t taken) const {
    refuse(fmt::format("{}:{} has extent {} left at mode {}, which holds {} of it", leaf.extent, leaf.stride, rest, i,
                       taken),
           "shape divisibility");
  }

  const Layout& a_;
  const Layout& b_;
  Modes modes_;
  std::vector<Reach> reach_;
};

/// A mode with the stride it has among the layout's indices, for inverses.
struct IndexedMode {
  Mode mode;
  std::int64_t index_stride = 1;
};

/// The coalesced modes by growing stride.
std::vector<IndexedMode> sorted_modes(const Layout& layout) {
  std::vector<IndexedMode> modes;
  std::int64_t running = 1;
  for (const Mode& mode : merged(flat_modes(layout))) {
    modes.push_back({mode, running});
    running *= mode.extent;
  }
  std::stable_sort(modes.begin(), modes.end(),
                   [](const IndexedMode& a, const IndexedMode& b) { return a.mode.stride < b.mode.stride; });
  return modes;
}

/// How often a block of `unit` offsets fits below the next mode, when the modes before it cover `covered` offsets.
std::int64_t gap(const char* verb, const Layout& layout, const Mode& next, std::int64_t covered, std::int64_t unit) {
  if (next.stride < 0)
    throw InvalidArgument(fmt::format("{} of {}: stride {} is negative", verb, to_string(layout), next.stride));
  if (next.stride < covered)
    throw InvalidArgument(fmt::format("{} of {}: not injective, mode {}:{} starts below offset {}", verb,
                                      to_string(layout), next.extent, next.stride, covered));
  if (next.stride % unit != 0)
    throw InvalidArgument(
        fmt::format("{} of {}: stride {} is not a multiple of {}", verb, to_string(layout), next.stride, unit));
  return next.stride / unit;
}

Layout padded(const Layout& layout, int rank) {
  std::vector<Layout> modes;
  for (int i = 0; i < rank; ++i) modes.push_back(i < layout.rank() ? layout.mode(i) : Layout(1, 0));
  return concatenate(modes);
}

/// Modes (first_i, second_i) of two layouts of one rank.
Layout zip(const Layout& first, const Layout& second) {
  return by_mode(first, first.rank(), [&](const Layout& mode, int i) { return concatenate({mode, second.mode(i)}); });
}

Layout padded_product(const Layout& a, const Layout& b) {
  const int rank = std::max(a.rank(), b.rank());
  return logical_product(padded(a, rank), padded(b, rank));
}

/// The layout with each leaf replaced by verb(leaf).
template <class Verb>
Layout transform_leaves(const IntTuple& shape, const IntTuple& stride, Verb&& verb) {
  if (shape.is_leaf()) {
    const Mode mode = verb(Mode{shape.value(), stride.value()});
    return Layout(mode.extent, mode.stride);
  }
  std::vector<Layout> modes;
  for (int i = 0; i < shape.rank(); ++i) modes.push_back(transform_leaves(shape[i], stride[i], verb));
  return concatenate(modes);
}

}  // namespace

Tiler make_tiler(const IntTuple& shape) {
  Tiler tiler;
  for (int i = 0; i < shape.rank(); ++i) tiler.modes.emplace_back(Layout(product(shape[i]), 1));
  return tiler;
}

Layout coalesce(const Layout& layout) { return from_modes(merged(flat_modes(layout))); }

Layout coalesce(const Layout& layout, const IntTuple& profile) {
  if (profile.is_leaf()) return coalesce(layout);
  if (profile.rank() > layout.rank())
    throw InvalidArgument(fmt::format("coalesce of {} by profile {}: it has only {} modes", to_string(layout),
                                      to_string(profile), layout.rank()));
  return by_mode(layout, layout.rank(),
                 [&](const Layout& mode, int i) { return i < profile.rank() ? coalesce(mode, profile[i]) : mode; });
}

Layout filter(const Layout& layout) {
  Modes modes = flat_modes(layout);
  std::erase_if(modes, [](const Mode& mode) { return mode.stride == 0; });
  return from_modes(merged(modes));
}

Layout composition(const Layout& a, const Layout& b) { return Composer(a, b).compose(); }

Layout composition(const Layout& a, const Tiler& b) {
  require_rank("composition", a, b);
  return tile_by_mode(a, b, static_cast<int>(b.modes.size()),
                      [](const Layout& mode, const Layout& tile) { return composition(mode, tile); });
}

Layout complement(const Layout& layout, std::int64_t cotarget) {
  if (cotarget < 1) throw InvalidArgument(fmt::format("complement of {} in {} offsets", to_string(layout), cotarget));
  Modes result;
  std::int64_t covered = 1;
  for (const IndexedMode& next : sorted_modes(filter(layout))) {
    append_merged(result, {gap("complement", layout, next.mode, covered, covered), covered});
    covered = next.mode.extent * next.mode.stride;
  }
  append_merged(result, {ceil_div(cotarget, covered), covered});
  return from_modes(result);
}

Layout logical_divide(const Layout& a, const Layout& b) {
  return composition(a, concatenate({b, complement(b, size(a))}));
}

Layout logical_divide(const Layout& a, const Tiler& b) {
  require_rank("logical_divide", a, b);
  return tile_by_mode(a, b, a.rank(),
                      [](const Layout& mode, const Layout& tile) { return logical_divide(mode, tile); });
}

Layout zipped_divide(const Layout& a, const Layout& b) { return logical_divide(a, b); }

Layout zipped_divide(const Layout& a, const Tiler& b) {
  require_rank("zipped_divide", a, b);
  std::vector<Layout> tiles;
  std::vector<Layout> rests;
  for (int i = 0; i < a.rank(); ++i) {
    const Layout mode = a.mode(i);
    const auto at = static_cast<std::size_t>(i);
    if (at >= b.modes.size()) {
      rests.push_back(mode);
    } else if (!b.modes[at]) {
      tiles.emplace_back();
      rests.push_back(mode);
    } else {
      const Layout divided = logical_divide(mode, *b.modes[at]);
      tiles.push_back(divided.mode(0));
      rests.push_back(divided.mode(1));
    }
  }
  return concatenate({concatenate(tiles), concatenate(rests)});
}

Layout logical_product(const Layout& a, const Layout& b) {
  return concatenate({a, composition(complement(a, size(a) * cosize(b)), b)});
}

Layout logical_product(const Layout& a, const Tiler& b) {
  require_rank("logical_product", a, b);
  return tile_by_mode(a, b, a.rank(),
                      [](const Layout& mode, const Layout& tile) { return logical_product(mode, tile); });
}

Layout blocked_product(const Layout& a, const Layout& b) {
  const Layout product = padded_product(a, b);
  return zip(product.mode(0), product.mode(1));
}

Layout raked_product(const Layout& a, const Layout& b) {
  const Layout product = padded_product(a, b);
  return zip(product.mode(1), product.mode(0));
}

Layout tile_to_shape(const Layout& block, const IntTuple& shape, const std::vector<int>& order) {
  if (block.rank() > shape.rank())
    throw InvalidArgument(
        fmt::format("tile_to_shape of {} to {}: the block has more modes", to_string(block), to_string(shape)));
  const Layout block_of_rank = padded(block, shape.rank());
  std::vector<std::int64_t> repeats;
  for (int i = 0; i < shape.rank(); ++i) {
    const std::int64_t extent = size(block_of_rank.mode(i));
    const std::int64_t target = product(shape[i]);
    if (target % extent != 0)
      throw InvalidArgument(fmt::format("tile_to_shape of {} to {}: in mode {}, {} does not divide {}",
                                        to_string(block), to_string(shape), i, extent, target));
    repeats.push_back(target / extent);
  }
  const IntTuple repeat_shape = IntTuple::tuple(repeats);
  return blocked_product(block_of_rank,
                         order.empty() ? make_layout(repeat_shape) : make_ordered_layout(repeat_shape, order));
}

Layout right_inverse(const Layout& layout) {
  Modes result;
  std::int64_t covered = 1;
  for (const IndexedMode& next : sorted_modes(layout)) {
    if (next.mode.stride != covered) continue;
    append_merged(result, {next.mode.extent, next.index_stride});
    covered *= next.mode.extent;
  }
  return from_modes(result);
}

Layout left_inverse(const Layout& layout) {
  Modes result;
  std::int64_t covered = 1;       // offsets below and in the modes so far
  std::int64_t block = 1;         // extent of `result`
  std::int64_t index_stride = 0;  // of the last mode so far
  std::int64_t last_extent = 1;
  for (const IndexedMode& next : sorted_modes(layout)) {
    if (next.mode.stride == 0) continue;
    append_merged(result, {gap("left_inverse", layout, next.mode, covered, block), index_stride});
    block = next.mode.stride;
    covered = next.mode.extent * next.mode.stride;
    index_stride = next.index_stride;
    last_extent = next.mode.extent;
  }
  append_merged(result, {last_extent, index_stride});
  return from_modes(result);
}

Layout upcast(const Layout& layout, std::int64_t n) {
  TILEWRIGHT_CHECK(n > 0, "upcast by {}", n);
  return transform_leaves(layout.shape(), layout.stride(), [&](Mode mode) -> Mode {
    if (mode.stride == 0) return mode;
    const std::int64_t step = std::abs(mode.stride);
    if (step % n != 0 && n % step != 0)
      throw InvalidArgument(fmt::format("upcast of {} by {}: stride {} neither divides it nor is a multiple",
                                        to_string(layout), n, mode.stride));
    return {ceil_div(mode.extent, ceil_div(n, step)), ceil_div(step, n) * (mode.stride < 0 ? -1 : 1)};
  });
}

Layout downcast(const Layout& layout, std::int64_t n) {
  TILEWRIGHT_CHECK(n > 0, "downcast by {}", n);
  return transform_leaves(layout.shape(), layout.stride(), [&](Mode mode) -> Mode {
    if (std::abs(mode.stride) == 1) return {mode.extent * n, mode.stride};
    return {mode.extent, mode.stride * n};
  });
}

}  // namespace tilewright::layout
