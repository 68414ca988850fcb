// Composition a o b: composes each leaf of b with the coalesced modes of a, then checks that their sums do not carry.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

/// The largest and the smallest coordinate that the leaves of b together reach in one mode of a.
struct Reach {
  std::int64_t max = 0;
  std::int64_t min = 0;
};

/// The modes of a that strides with one basis index: all of a (empty basis), or the mode that the basis names.
struct LhsModes {
  LhsModes(const Basis& path, const Layout& part) : basis(path), modes(flat_modes(part)) {
    merge_past_end(modes);
    if (modes.empty()) modes.push_back({});
    for (std::size_t i = 0; i < modes.size(); ++i) reach.push_back({});
  }
  Basis basis;
  Modes modes;  // coalesced
  SmallVector<Reach, 8> reach;
};

/// The coordinates 0, step, 2 * step, ... of one mode: how many there are, and whether the step divides the extent.
struct StridedMode {
  std::int64_t coordinates = 1;
  bool divides = true;
};
/// @pre 0 < step < extent
StridedMode strided(std::int64_t extent, std::int64_t step) {
  if (step == 1) return {extent, true};
  const std::int64_t whole = extent / step;
  const bool divides = extent == whole * step;
  return {divides ? whole : whole + 1, divides};
}

/// Computes a o b, where b is a layout or a pair of layouts.
class Composer {
 public:
  Composer(const Layout& a, const Layout& b) : a_(a), b_(b) { lhs_modes_.reserve(1); }
  Composer(const Layout& a, const Layout& first, const Layout& second) : Composer(a, first) { second_ = &second; }

  Layout compose() {
    ShapeAndStride result = compose_tree(b_.shape(), b_.stride());
    if (second_ != nullptr) {
      LayoutBuilder pair(2);
      pair.append(std::move(result));
      pair.append(compose_tree(second_->shape(), second_->stride()));
      result = std::move(pair).shape_and_stride();
    }
    for (const LhsModes& lhs : lhs_modes_) check_carries(lhs);
    return Layout(std::move(result.shape), std::move(result.stride));
  }

 private:
  ShapeAndStride compose_tree(const IntTuple& shape, const IntTuple& stride) {
    if (shape.is_leaf()) {
      parts_.clear();
      compose_leaf({shape.value(), stride.basis_value(), stride.basis()});
      return shape_and_stride(parts_);
    }
    LayoutBuilder modes(shape.rank());
    for (int i = 0; i < shape.rank(); ++i) modes.append(compose_tree(shape[i], stride[i]));
    return std::move(modes).shape_and_stride();
  }

  LhsModes& lhs_modes(const Basis& basis) {
    for (LhsModes& lhs : lhs_modes_) {
      if (lhs.basis == basis) return lhs;
      if (lhs.basis.is_prefix_of(basis) || basis.is_prefix_of(lhs.basis))
        refuse(fmt::format("strides of basis \"{}\" and \"{}\" name a mode and a part of it", to_string(lhs.basis),
                           to_string(basis)),
               "basis congruence");
    }
    return basis.empty() ? lhs_modes_.emplace_back(basis, a_) : lhs_modes_.emplace_back(basis, get(a_, basis));
  }

  /// Sets parts_ to a o leaf: one mode for each mode of a that the leaf covers a part of.
  void compose_leaf(const Mode& leaf) {
    if (leaf.stride == 0) return parts_.push_back({leaf.extent, 0});
    LhsModes& lhs = lhs_modes(leaf.basis);
    Mode rest = leaf;
    for (std::size_t i = 0; i + 1 < lhs.modes.size() && (rest.extent > 1 || parts_.empty()); ++i) {
      const std::int64_t extent = lhs.modes[i].extent;
      const std::int64_t step = std::abs(rest.stride);
      const std::int64_t sign = rest.stride < 0 ? -1 : 1;
      if (step >= extent) {  // the stride skips this mode
        const std::int64_t modes = ceil_div(step, extent);
        if (rest.extent > 1 && modes * extent != step) refuse_stride(lhs, leaf, i, step);
        rest.stride = modes * sign;
        continue;
      }
      const StridedMode strided_mode = strided(extent, step);
      if (rest.extent > 1) {
        const std::int64_t taken = std::min(strided_mode.coordinates, rest.extent);
        const std::int64_t outer = rest.extent / taken;
        if (outer * taken != rest.extent) refuse_shape(lhs, leaf, i, rest.extent, taken);
        if (outer > 1 && !strided_mode.divides) refuse_stride(lhs, leaf, i, step);
        append(lhs, i, {taken, rest.stride});
        rest.extent = outer;
      }
      rest.stride = sign;
    }
    if (parts_.empty() || rest.extent > 1) append(lhs, lhs.modes.size() - 1, rest);
  }

  void append(LhsModes& lhs, std::size_t i, const Mode& part) {
    const Mode& through = lhs.modes[i];
    parts_.push_back({part.extent, checked_product(part.stride, through.stride), through.basis});
    const std::int64_t last = checked_product(part.extent - 1, part.stride);
    std::int64_t& reach = last > 0 ? lhs.reach[i].max : lhs.reach[i].min;
    reach = checked_sum(reach, last);
  }

  void check_carries(const LhsModes& lhs) const {
    const auto reaches = [&](std::int64_t Reach::*sign) {
      return std::any_of(lhs.reach.begin(), lhs.reach.end(), [sign](const Reach& r) { return r.*sign != 0; });
    };
    if (lhs.modes.size() > 1 && reaches(&Reach::max) && reaches(&Reach::min))
      refuse(fmt::format("its strides have both signs{}", describe(lhs)), "carry");
    for (std::size_t i = 0; i + 1 < lhs.modes.size(); ++i) {
      const std::int64_t reach = std::max(lhs.reach[i].max, -lhs.reach[i].min);
      if (reach >= lhs.modes[i].extent)
        refuse(fmt::format("its modes together reach coordinate {} of mode {} of extent {}{}", reach, i,
                           lhs.modes[i].extent, describe(lhs)),
               "carry");
    }
  }

  static std::string describe(const LhsModes& lhs) {
    return fmt::format("; the left side coalesced{}{} is {}", lhs.basis.empty() ? "" : " at ", to_string(lhs.basis),
                       to_string(from_modes(lhs.modes)));
  }
  [[noreturn]] void refuse(const std::string& why, const char* rule) const {
    const Layout b = second_ != nullptr ? pair_of(b_, *second_) : b_;
    throw InvalidArgument(fmt::format("composition {} o {} breaks {}: {}", to_string(a_), to_string(b), rule, why));
  }
  [[noreturn]] void refuse_stride(const LhsModes& lhs, const Mode& leaf, std::size_t i, std::int64_t step) const {
    refuse(fmt::format("{}:{} meets mode {} of extent {} with stride {}; one must divide the other{}", leaf.extent,
                       leaf.stride, i, lhs.modes[i].extent, step, describe(lhs)),
           "stride divisibility");
  }
  [[noreturn]] void refuse_shape(const LhsModes& lhs, const Mode& leaf, std::size_t i, std::int64_t rest,
                                 std::int64_t taken) const {
    refuse(fmt::format("{}:{} has extent {} left at mode {}, which holds {} of it{}", leaf.extent, leaf.stride, rest, i,
                       taken, describe(lhs)),
           "shape divisibility");
  }

  const Layout& a_;
  const Layout& b_;
  const Layout* second_ = nullptr;  // if not null, the right side is (b_, *second_)
  std::vector<LhsModes> lhs_modes_;
  Modes parts_;  // the result for the current leaf
};

}  // namespace

Layout composition(const Layout& a, const Layout& b) { return Composer(a, b).compose(); }
Layout composition_of_pair(const Layout& a, const Layout& first, const Layout& second) {
  return Composer(a, first, second).compose();
}

Layout composition(const Layout& a, const Tiler& b) {
  if (b.is_whole()) return a;
  if (b.is_layout()) return composition(a, b.layout());
  if (b.rank() == 0 || b.rank() > a.rank())
    throw InvalidArgument(fmt::format("composition of {} by mode with {}: the tiler has {} modes, the layout {}",
                                      to_string(a), to_string(b), b.rank(), a.rank()));
  LayoutBuilder modes(b.rank());
  for (int i = 0; i < b.rank(); ++i) modes.append(composition(a.mode(i), b[i]));
  return std::move(modes).layout();
}

}  // namespace tilewright::layout
