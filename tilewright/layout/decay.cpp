// decay(): a swizzled layout as a layout without a swizzle, if the swizzle XORs no two bits that both vary.
#include <cstdlib>

#include "tilewright/base/power_of_two.hpp"
#include "tilewright/layout/composed_layout.hpp"
#include "tilewright/layout/modes.hpp"

namespace tilewright::layout {
namespace {

/// Splits offsets into three parts: the bits below the swizzled ones (modes may add as long as they do not carry out),
/// the block of bits that the swizzle reads or changes and the bits between them, and the bits above (modes may add
/// freely).
class Decay {
 public:
  explicit Decay(const ComposedLayout& layout)
      : swizzle_(layout.swizzle),
        offset_(layout.offset.is_static() ? layout.offset.value() : 0),  // else a multiple of the block
        low_(std::int64_t{1} << swizzle_.base()),
        block_(size(swizzle_)),
        low_reach_(offset_ & (low_ - 1)),
        taken_(offset_ & (block_ - 1) & -low_) {}

  /// Records the bits that the mode varies. False if modes or the offset may carry into or within the swizzled bits.
  bool admit(const Mode& mode) {
    if (is_above(mode)) return true;
    if (!mode.extent.is_static() || !mode.stride.is_static()) return false;
    if (is_below(mode)) return reaches((mode.extent.value() - 1) * mode.stride.value());
    if (!is_power_of_two(mode.stride.value()) || !is_power_of_two(mode.extent.value())) return false;
    for (std::int64_t bit = mode.stride.value(); bit < end_of(mode); bit <<= 1) {
      if (bit < low_ ? !reaches(bit) : bit < block_ && !takes(bit)) return false;
    }
    return true;
  }

  /// Whether the swizzle XORs no varying bit into another one. @pre every mode has been admitted
  bool keeps_bits_apart() const { return (swizzle_(varying_) & varying_) == varying_; }

  /// The modes of swizzle o mode: one for each bit, merged where they are contiguous. @pre keeps_bits_apart()
  Modes swizzled(const Mode& mode) const {
    if (is_above(mode) || is_below(mode) || mode.extent == 1) return {mode};
    Modes result;
    for (std::int64_t bit = mode.stride.value(); bit < end_of(mode); bit <<= 1)
      append_merged(result, {2, bit < low_ ? bit : swizzle_(offset_ + bit) - swizzle_(offset_)});
    return result;
  }

 private:
  static std::int64_t end_of(const Mode& mode) { return mode.stride.value() * mode.extent.value(); }
  bool is_above(const Mode& mode) const { return mode.stride.divisor() % block_ == 0; }
  bool is_below(const Mode& mode) const {
    return mode.stride.lower() > 0 && holds(less((mode.extent - 1) * mode.stride, low_));
  }
  bool reaches(std::int64_t offset) { return (low_reach_ += offset) < low_; }
  bool takes(std::int64_t bit) {
    const bool is_free = (taken_ & bit) == 0;
    taken_ |= bit;
    varying_ |= bit;
    return is_free;
  }

  Swizzle swizzle_;
  std::int64_t offset_;
  std::int64_t low_;
  std::int64_t block_;
  std::int64_t low_reach_;    // the largest sum of the low parts
  std::int64_t taken_;        // bits of the block that the offset or a mode sets
  std::int64_t varying_ = 0;  // bits of the block that modes set
};

Layout decayed(const Decay& decay, const IntTuple& shape, const IntTuple& stride) {
  if (shape.is_leaf()) return from_modes(decay.swizzled({shape.number(), stride.number()}));
  std::vector<Layout> modes;
  for (int i = 0; i < shape.rank(); ++i) modes.push_back(decayed(decay, shape[i], stride[i]));
  return modes.empty() ? Layout(shape, stride) : concatenate(modes);
}

}  // namespace

std::optional<LayoutAndOffset> decay(const ComposedLayout& layout) {
  const bool is_placed = layout.offset.is_static() || layout.offset.divisor() % size(layout.swizzle) == 0;
  if (!is_placed) return std::nullopt;
  Decay decay(layout);
  for (const Mode& mode : integer_modes("decay", layout.layout)) {
    if (!decay.admit(mode)) return std::nullopt;
  }
  if (!decay.keeps_bits_apart()) return std::nullopt;
  return LayoutAndOffset{decayed(decay, layout.layout.shape(), layout.layout.stride()),
                         layout.swizzle.at(layout.offset)};
}

}  // namespace tilewright::layout
