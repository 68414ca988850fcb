// XOR swizzles, and composed layouts: a swizzle after a layout.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "tilewright/layout/layout.hpp"

namespace tilewright::layout {

/// Sw<bits,base,shift>, as in CuTe: o ^ ((o & yyy) >> shift), where yyy is `bits` ones from bit base + shift on. A
/// negative shift is a left shift: yyy begins at bit base and is XORed from bit base - shift on. A swizzle is an
/// involution, and a bijection of every aligned block of 2^(bits + base + |shift|) offsets.
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
  /// The swizzled value of a run-time offset. Parts of a sum that the swizzle does not change stay outside: stage *
  /// 8192
  /// + x with a period of 1024 is stage * 8192 + swizzle(x). @throws InvalidArgument if the offset may be negative
  Number at(const Number& offset) const;

  bool operator==(const Swizzle&) const = default;

 private:
  /// at() of an offset whose terms are not multiples of the period.
  Number swizzled(const Number& offset) const;

  int bits_ = 0;
  int base_ = 0;
  int shift_ = 0;
};

/// The size of the aligned blocks that the swizzle permutes.
std::int64_t size(const Swizzle& swizzle);
/// The swizzle for elements n times as large. @throws InvalidArgument unless n is a power of two (also the next two),
/// or if the swizzle permutes elements within a group of n
Swizzle upcast(const Swizzle& swizzle, std::int64_t n);
/// The swizzle for elements n times as small.
Swizzle downcast(const Swizzle& swizzle, std::int64_t n);

/// The swizzle of elements of old_bits, for elements of new_bits.
Swizzle recast(const Swizzle& swizzle, std::int64_t old_bits, std::int64_t new_bits);

/// The bits that are read and the bits that are changed: yyy and zzz == yyy >> shift.
std::int64_t source_bits(const Swizzle& swizzle);
std::int64_t target_bits(const Swizzle& swizzle);
/// The swizzle with these bits. @throws InvalidArgument unless both are one run of ones of equal length
/// @post source_bits(r) == source, target_bits(r) == target; the identity where both are 0
Swizzle make_swizzle(std::int64_t source, std::int64_t target);
/// a o b. Refused: different shifts, bits that b changes and a reads, bits of both that are not one run.
/// @post r(o) == a(b(o))
Swizzle composition(const Swizzle& a, const Swizzle& b);

/// "Sw<3,4,3>"
std::string to_string(const Swizzle& swizzle);

/// The function c -> swizzle(offset + layout(c)). Its algebra is in composed_layout.hpp.
struct ComposedLayout {
  Swizzle swizzle;
  Number offset = 0;  // of any kind: a stage of a ring times its size
  Layout layout;

  const IntTuple& shape() const { return layout.shape(); }
  int rank() const { return layout.rank(); }
  /// Mode i of the layout, with the same swizzle and offset.
  ComposedLayout mode(int i) const { return {swizzle, offset, layout.mode(i)}; }

  std::int64_t operator()(std::int64_t index) const { return swizzle(checked_sum(offset.value(), layout(index))); }
  std::int64_t operator()(const IntTuple& coord) const { return swizzle(checked_sum(offset.value(), layout(coord))); }
  template <std::integral... I>
  requires(sizeof...(I) >= 2) std::int64_t operator()(I... coord) const {
    return swizzle(checked_sum(offset.value(), layout(coord...)));
  }
  /// The same for run-time offsets, layouts and coordinates.
  Number at(const IntTuple& coord) const { return swizzle.at(offset + layout.at(coord)); }
  template <class... Coord>
  requires(sizeof...(Coord) >= 2) Number at(const Coord&... coord)
  const { return at(IntTuple{IntTuple(coord)...}); }

  bool operator==(const ComposedLayout&) const = default;
};

/// Number of coordinates.
std::int64_t size(const ComposedLayout& layout);
Number size_of(const ComposedLayout& layout);
/// The layout with the values of its Numbers.
ComposedLayout evaluate(const ComposedLayout& layout, const Bindings& bindings);

/// "Sw<3,4,3> o 0 o (8,64):(64,1)"
std::string to_string(const ComposedLayout& layout);

}  // namespace tilewright::layout
