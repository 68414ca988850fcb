// Composition a o b: composes each leaf of b with the coalesced modes of a, then checks that their sums do not carry.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"
#include "tilewright/layout/conditions.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

/// The largest and the smallest coordinate that the leaves of b together reach in one mode of a, and how many modes do.
struct Reach {
  Number max = 0;
  Number min = 0;
  int modes = 0;
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

/// A part of a mode of b: how many of its coordinates one mode of a takes, and how many times as many it has.
struct Taken {
  Number taken;
  Number outer;
};

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
      compose_leaf({shape.number(), stride.basis_number(), stride.basis()});
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
        throw InvalidArgument(refusal(fmt::format("strides of basis \"{}\" and \"{}\" name a mode and a part of it",
                                                  to_string(lhs.basis), to_string(basis)),
                                      "basis congruence"));
    }
    return basis.empty() ? lhs_modes_.emplace_back(basis, a_) : lhs_modes_.emplace_back(basis, get(a_, basis));
  }

  /// Sets parts_ to a o leaf: one mode for each mode of a that the leaf covers a part of.
  void compose_leaf(const Mode& leaf) {
    if (leaf.stride == 0) return parts_.push_back({leaf.extent, 0});
    LhsModes& lhs = lhs_modes(leaf.basis);
    Mode rest = leaf;
    for (std::size_t i = 0; i + 1 < lhs.modes.size() && (rest.extent != 1 || parts_.empty()); ++i) {
      const Number extent = lhs.modes[i].extent;
      const Number step = magnitude(rest.stride);
      const int sign = rest.stride.lower() < 0 ? -1 : 1;
      if (skips(lhs, leaf, i, step)) {
        const Number modes = ceil_div(step, extent);
        if (rest.extent != 1) require_stride(lhs, leaf, i, step, equal(modes * extent, step));
        rest.stride = modes * sign;
        continue;
      }
      if (rest.extent != 1) {
        const auto [taken, outer] = take(lhs, leaf, i, rest.extent, step);
        append(lhs, i, {taken, rest.stride});
        rest.extent = outer;
      }
      rest.stride = sign;
    }
    if (parts_.empty() || rest.extent != 1) append(lhs, lhs.modes.size() - 1, rest);
  }

  /// Whether the stride skips mode i of a: it is a multiple of the extent. If it is neither known to be less than the
  /// extent nor a divisor or a multiple of it, it is required to be less.
  bool skips(const LhsModes& lhs, const Mode& leaf, std::size_t i, const Number& step) const {
    const Number& extent = lhs.modes[i].extent;
    const Number is_inside = less(step, extent);
    const Decision decision = decide(is_inside);
    if (decision != Decision::unknown) return decision == Decision::no;
    if (step == 1 || (step.lower() > 0 && holds(divides(step, extent)))) return false;
    if (holds(divides(extent, step))) return true;
    require_stride(lhs, leaf, i, step, is_inside);
    return false;
  }

  /// How mode i of a splits the rest of a mode of b, whose stride is `step`.
  Taken take(const LhsModes& lhs, const Mode& leaf, std::size_t i, const Number& rest, const Number& step) const {
    const Number& extent = lhs.modes[i].extent;
    const Number coordinates = step == 1 ? extent : ceil_div(extent, step);
    const Number fits = less_equal(rest, coordinates);
    if (holds(fits)) return {rest, 1};
    const auto shape_rule = [&] { return shape_refusal(lhs, leaf, i, rest, coordinates); };
    // A rest that may be larger or smaller must be a multiple of the coordinates, which then is right in both cases, or
    // is required to fit.
    if (decide(fits) == Decision::unknown && !holds(divides(coordinates, rest))) {
      require(fits, shape_rule);
      return {rest, 1};
    }
    require(divides(coordinates, rest), shape_rule);
    const Number outer = rest / coordinates;
    if (outer != 1 && step != 1) require_stride(lhs, leaf, i, step, divides(step, extent));
    return {coordinates, outer};
  }

  void append(LhsModes& lhs, std::size_t i, const Mode& part) {
    const Mode& through = lhs.modes[i];
    parts_.push_back({part.extent, part.stride * through.stride, through.basis});
    if (part.extent == 1) return;
    Number& reach = part.stride.lower() < 0 ? lhs.reach[i].min : lhs.reach[i].max;
    reach += (part.extent - 1) * part.stride;
    ++lhs.reach[i].modes;
  }

  void check_carries(const LhsModes& lhs) const {
    const auto reaches = [&](Number Reach::*sign) {
      return std::any_of(lhs.reach.begin(), lhs.reach.end(), [sign](const Reach& r) { return r.*sign != 0; });
    };
    if (lhs.modes.size() > 1 && reaches(&Reach::max) && reaches(&Reach::min))
      throw InvalidArgument(refusal(fmt::format("its strides have both signs{}", describe(lhs)), "carry"));
    for (std::size_t i = 0; i + 1 < lhs.modes.size(); ++i) {
      if (lhs.reach[i].modes < 2) continue;  // one mode takes no more coordinates than there are
      const Number reach = lhs.reach[i].max == 0 ? lhs.reach[i].min * -1 : lhs.reach[i].max;
      require(less(reach, lhs.modes[i].extent), [&] {
        return refusal(fmt::format("its modes together reach coordinate {} of mode {} of extent {}{}", to_string(reach),
                                   i, to_string(lhs.modes[i].extent), describe(lhs)),
                       "carry");
      });
    }
  }

  static std::string describe(const LhsModes& lhs) {
    return fmt::format("; the left side coalesced{}{} is {}", lhs.basis.empty() ? "" : " at ", to_string(lhs.basis),
                       to_string(from_modes(lhs.modes)));
  }
  std::string refusal(const std::string& why, const char* rule) const {
    const Layout b = second_ != nullptr ? pair_of(b_, *second_) : b_;
    return fmt::format("composition {} o {} breaks {}: {}", to_string(a_), to_string(b), rule, why);
  }
  void require_stride(const LhsModes& lhs, const Mode& leaf, std::size_t i, const Number& step,
                      const Number& condition) const {
    require(condition, [&] {
      return refusal(fmt::format("{}:{} meets mode {} of extent {} with stride {}; one must divide the other{}",
                                 to_string(leaf.extent), to_string(leaf.stride), i, to_string(lhs.modes[i].extent),
                                 to_string(step), describe(lhs)),
                     "stride divisibility");
    });
  }
  std::string shape_refusal(const LhsModes& lhs, const Mode& leaf, std::size_t i, const Number& rest,
                            const Number& taken) const {
    return refusal(fmt::format("{}:{} has extent {} left at mode {}, which holds {} of it{}", to_string(leaf.extent),
                               to_string(leaf.stride), to_string(rest), i, to_string(taken), describe(lhs)),
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
