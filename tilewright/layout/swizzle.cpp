// Evaluation and change of units of XOR swizzles.
#include "tilewright/layout/swizzle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::layout {
namespace {

int log2_of_unit(std::int64_t n) {
  TILEWRIGHT_CHECK(n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n)), "{} is not a power of two", n);
  return std::countr_zero(static_cast<std::uint64_t>(n));
}

}  // namespace

Swizzle::Swizzle(int bits, int base, int shift) : bits_(bits), base_(base), shift_(shift) {
  if (bits < 0 || base < 0 || std::abs(shift) < bits || bits + base + std::abs(shift) > 62)
    throw InvalidArgument(
        fmt::format("Sw<{},{},{}> is not a swizzle: it needs 0 <= bits <= |shift| and base >= 0", bits, base, shift));
}

std::int64_t Swizzle::operator()(std::int64_t offset) const {
  const std::int64_t ones = (std::int64_t{1} << bits_) - 1;
  if (shift_ >= 0) return offset ^ ((offset & (ones << (base_ + shift_))) >> shift_);
  return offset ^ ((offset & (ones << base_)) << -shift_);
}

std::int64_t size(const Swizzle& swizzle) {
  return std::int64_t{1} << (swizzle.bits() + swizzle.base() + std::abs(swizzle.shift()));
}

Swizzle upcast(const Swizzle& swizzle, std::int64_t n) {
  const int shrink = log2_of_unit(n);
  if (swizzle.bits() == 0) return Swizzle(0, std::max(0, swizzle.base() - shrink), swizzle.shift());
  if (swizzle.base() < shrink)
    throw InvalidArgument(fmt::format("{} moves parts of units of {}", to_string(swizzle), n));
  return Swizzle(swizzle.bits(), swizzle.base() - shrink, swizzle.shift());
}

Swizzle downcast(const Swizzle& swizzle, std::int64_t n) {
  return Swizzle(swizzle.bits(), swizzle.base() + log2_of_unit(n), swizzle.shift());
}

std::string to_string(const Swizzle& swizzle) {
  return fmt::format("Sw<{},{},{}>", swizzle.bits(), swizzle.base(), swizzle.shift());
}

std::int64_t size(const ComposedLayout& layout) { return size(layout.layout); }

ComposedLayout upcast(const ComposedLayout& layout, std::int64_t n) {
  if (layout.offset % n != 0) throw InvalidArgument(fmt::format("offset {} is not a multiple of {}", layout.offset, n));
  return {upcast(layout.swizzle, n), layout.offset / n, upcast(layout.layout, n)};
}

ComposedLayout downcast(const ComposedLayout& layout, std::int64_t n) {
  return {downcast(layout.swizzle, n), layout.offset * n, downcast(layout.layout, n)};
}

std::string to_string(const ComposedLayout& layout) {
  return fmt::format("{} o {} o {}", to_string(layout.swizzle), layout.offset, to_string(layout.layout));
}

}  // namespace tilewright::layout
