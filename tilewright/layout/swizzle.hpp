// XOR swizzles, and layouts with a swizzle after them.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "tilewright/layout/layout.hpp"

namespace tilewright::layout {

/// Sw<bits,base,shift>: o ^ ((o & yyy) >> shift), where yyy is `bits` ones at bit base + shift. A negative shift moves
/// left: yyy is then at bit base and lands at base - shift. An involution, and a bijection of every aligned block of
/// 2^(bits + base + |shift|).
class Swizzle {
 public:
  /// The identity, Sw<0,0,0>.
  Swizzle() = default;
  /// @throws InvalidArgument unless 0 <= bits <= |shift|, 0 <= base, and the block fits in 62 bits.
  Swizzle(int bits, int base, int shift);

  int bits() const { return bits_; }
  int base() const { return base_; }
  int shift() const { return shift_; }

  std::int64_t operator()(std::int64_t offset) const;

  bool operator==(const Swizzle&) const = default;

 private:
  int bits_ = 0;
  int base_ = 0;
  int shift_ = 0;
};

/// Size of the block that the swizzle permutes within itself.
std::int64_t size(const Swizzle& swizzle);
/// The same swizzle of offsets counted in units of n. @pre n is a power of two.
/// Refused: a swizzle that moves parts of a unit. @throws InvalidArgument
Swizzle upcast(const Swizzle& swizzle, std::int64_t n);
/// The same swizzle of offsets counted in units of 1/n. @pre n is a power of two.
Swizzle downcast(const Swizzle& swizzle, std::int64_t n);

/// "Sw<3,4,3>"
std::string to_string(const Swizzle& swizzle);

/// c -> swizzle(offset + layout(c)).
struct ComposedLayout {
  Swizzle swizzle;
  std::int64_t offset = 0;
  Layout layout;

  std::int64_t operator()(std::int64_t index) const { return swizzle(offset + layout(index)); }
  std::int64_t operator()(const IntTuple& coord) const { return swizzle(offset + layout(coord)); }
  template <std::integral... I>
  requires(sizeof...(I) >= 2) std::int64_t operator()(I... coord) const { return swizzle(offset + layout(coord...)); }

  bool operator==(const ComposedLayout&) const = default;
};

std::int64_t size(const ComposedLayout& layout);
/// All three parts in units of n. @throws InvalidArgument as the parts do, and unless n divides the offset.
ComposedLayout upcast(const ComposedLayout& layout, std::int64_t n);
ComposedLayout downcast(const ComposedLayout& layout, std::int64_t n);

/// "Sw<3,4,3> o 0 o (8,64):(64,1)"
std::string to_string(const ComposedLayout& layout);

}  // namespace tilewright::layout
