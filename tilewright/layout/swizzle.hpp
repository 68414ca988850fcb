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
/// The same swizzle of offsets counted in units of n. Here and below @throws InvalidArgument unless units are powers of
/// two; here also for a swizzle that moves parts of a unit.
Swizzle upcast(const Swizzle& swizzle, std::int64_t n);
/// The same swizzle of offsets counted in units of 1/n.
Swizzle downcast(const Swizzle& swizzle, std::int64_t n);

/// The same swizzle in units of new_bits of what it is in units of old_bits.
Swizzle recast(const Swizzle& swizzle, std::int64_t old_bits, std::int64_t new_bits);

/// The bits that are read, and the bits that they change: yyy and zzz of o ^ ((o & yyy) >> shift).
std::int64_t source_bits(const Swizzle& swizzle);
std::int64_t target_bits(const Swizzle& swizzle);
/// The swizzle of these bits. @throws InvalidArgument unless both are one run of as many ones.
/// @post source_bits(r) == source, target_bits(r) == target; the identity where both are 0
Swizzle make_swizzle(std::int64_t source, std::int64_t target);
/// a after b. Refused: different shifts, bits that b changes and a reads, bits of both that are no one run.
/// @post r(o) == a(b(o))
Swizzle composition(const Swizzle& a, const Swizzle& b);

/// "Sw<3,4,3>"
std::string to_string(const Swizzle& swizzle);

/// c -> swizzle(offset + layout(c)). Its algebra: composed_layout.hpp.
struct ComposedLayout {
  Swizzle swizzle;
  std::int64_t offset = 0;
  Layout layout;

  const IntTuple& shape() const { return layout.shape(); }
  int rank() const { return layout.rank(); }
  /// Mode i of the layout, with the same swizzle and offset.
  ComposedLayout mode(int i) const { return {swizzle, offset, layout.mode(i)}; }

  std::int64_t operator()(std::int64_t index) const { return swizzle(checked_sum(offset, layout(index))); }
  std::int64_t operator()(const IntTuple& coord) const { return swizzle(checked_sum(offset, layout(coord))); }
  template <std::integral... I>
  requires(sizeof...(I) >= 2) std::int64_t operator()(I... coord) const {
    return swizzle(checked_sum(offset, layout(coord...)));
  }

  bool operator==(const ComposedLayout&) const = default;
};

/// Number of coordinates.
std::int64_t size(const ComposedLayout& layout);

/// "Sw<3,4,3> o 0 o (8,64):(64,1)"
std::string to_string(const ComposedLayout& layout);

}  // namespace tilewright::layout
