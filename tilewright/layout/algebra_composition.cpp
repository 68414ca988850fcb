// Composition: the leaves of the right side one at a time, and what they reach together.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

/// Largest sums, of each sign, of the coordinates that composition reaches in one mode of its left side.
struct Reach {
  std::int64_t up = 0;
  std::int64_t down = 0;
};

/// What strides of one basis lead through: all of the left side, or the mode of it that the basis names.
struct Target {
  Target(const Basis& through, const Layout& part) : basis(through), modes(flat_modes(part)) {
    merge_past_end(modes);
    if (modes.empty()) modes.push_back({});
    for (std::size_t i = 0; i < modes.size(); ++i) reach.push_back({});
  }
  Basis basis;
  Modes modes;  // coalesced
  SmallVector<Reach, 8> reach;
};

/// Of a mode that strides step through: the elements that one pass over it meets, and whether they end where it ends.
struct Pass {
  std::int64_t elements = 1;
  bool ends_evenly = true;
};
/// @pre 0 < step < extent
Pass pass_over(std::int64_t extent, std::int64_t step) {
  if (step == 1) return {extent, true};
  const std::int64_t whole = extent / step;
  const bool ends_evenly = extent == whole * step;
  return {ends_evenly ? whole : whole + 1, ends_evenly};
}

/// a o b, where b is one layout or the pair of two.
class Composer {
 public:
  Composer(const Layout& a, const Layout& b) : a_(a), b_(b) { targets_.reserve(1); }
  Composer(const Layout& a, const Layout& first, const Layout& second) : Composer(a, first) { second_ = &second; }

  Layout compose() {
    ShapeAndStride result = compose_tree(b_.shape(), b_.stride());
    if (second_ != nullptr) {
      LayoutBuilder pair(2);
      pair.append(std::move(result));
      pair.append(compose_tree(second_->shape(), second_->stride()));
      result = std::move(pair).shape_and_stride();
    }
    for (const Target& target : targets_) check_carries(target);
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

  Target& target_of(const Basis& basis) {
    for (Target& target : targets_) {
      if (target.basis == basis) return target;
      if (target.basis.is_prefix_of(basis) || basis.is_prefix_of(target.basis))
        refuse(fmt::format("strides of basis \"{}\" and \"{}\" name a mode and a part of it", to_string(target.basis),
                           to_string(basis)),
               "basis congruence");
    }
    return basis.empty() ? targets_.emplace_back(basis, a_) : targets_.emplace_back(basis, get(a_, basis));
  }

  /// Leaves in parts_ what the leaf takes of each mode.
  void compose_leaf(const Mode& leaf) {
    if (leaf.stride == 0) return parts_.push_back({leaf.extent, 0});
    Target& target = target_of(leaf.basis);
    Mode rest = leaf;
    for (std::size_t i = 0; i + 1 < target.modes.size() && (rest.extent > 1 || parts_.empty()); ++i) {
      const std::int64_t extent = target.modes[i].extent;
      const std::int64_t step = std::abs(rest.stride);
      const std::int64_t sign = rest.stride < 0 ? -1 : 1;
      if (step >= extent) {  // steps over the whole mode
        const std::int64_t modes = ceil_div(step, extent);
        if (rest.extent > 1 && modes * extent != step) refuse_stride(target, leaf, i, step);
        rest.stride = modes * sign;
        continue;
      }
      const Pass pass = pass_over(extent, step);
      if (rest.extent > 1) {
        const std::int64_t taken = std::min(pass.elements, rest.extent);
        const std::int64_t left = rest.extent / taken;
        if (left * taken != rest.extent) refuse_shape(target, leaf, i, rest.extent, taken);
        if (left > 1 && !pass.ends_evenly) refuse_stride(target, leaf, i, step);
        append(target, i, {taken, rest.stride});
        rest.extent = left;
      }
      rest.stride = sign;
    }
    if (parts_.empty() || rest.extent > 1) append(target, target.modes.size() - 1, rest);
  }

  void append(Target& target, std::size_t i, const Mode& part) {
    const Mode& through = target.modes[i];
    parts_.push_back({part.extent, checked_product(part.stride, through.stride), through.basis});
    const std::int64_t last = checked_product(part.extent - 1, part.stride);
    std::int64_t& reach = last > 0 ? target.reach[i].up : target.reach[i].down;
    reach = checked_sum(reach, last);
  }

  void check_carries(const Target& target) const {
    const auto goes = [&](std::int64_t Reach::*way) {
      return std::any_of(target.reach.begin(), target.reach.end(), [way](const Reach& r) { return r.*way != 0; });
    };
    if (target.modes.size() > 1 && goes(&Reach::up) && goes(&Reach::down))
      refuse(fmt::format("its strides have both signs{}", through(target)), "carry");
    for (std::size_t i = 0; i + 1 < target.modes.size(); ++i) {
      const std::int64_t reach = std::max(target.reach[i].up, -target.reach[i].down);
      if (reach >= target.modes[i].extent)
        refuse(fmt::format("its modes together reach coordinate {} of mode {} of extent {}{}", reach, i,
                           target.modes[i].extent, through(target)),
               "carry");
    }
  }

  static std::string through(const Target& target) {
    return fmt::format("; the left side coalesced{}{} is {}", target.basis.empty() ? "" : " at ",
                       to_string(target.basis), to_string(from_modes(target.modes)));
  }
  [[noreturn]] void refuse(const std::string& why, const char* rule) const {
    const Layout b = second_ != nullptr ? pair_of(b_, *second_) : b_;
    throw InvalidArgument(fmt::format("composition {} o {} breaks {}: {}", to_string(a_), to_string(b), rule, why));
  }
  [[noreturn]] void refuse_stride(const Target& target, const Mode& leaf, std::size_t i, std::int64_t step) const {
    refuse(fmt::format("{}:{} meets mode {} of extent {} with stride {}; one must divide the other{}", leaf.extent,
                       leaf.stride, i, target.modes[i].extent, step, through(target)),
           "stride divisibility");
  }
  [[noreturn]] void refuse_shape(const Target& target, const Mode& leaf, std::size_t i, std::int64_t rest,
                                 std::int64_t taken) const {
    refuse(fmt::format("{}:{} has extent {} left at mode {}, which holds {} of it{}", leaf.extent, leaf.stride, rest, i,
                       taken, through(target)),
           "shape divisibility");
  }

  const Layout& a_;
  const Layout& b_;
  const Layout* second_ = nullptr;  // of the pair (b_, *second_)
  std::vector<Target> targets_;
  Modes parts_;  // of the leaf at hand
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
