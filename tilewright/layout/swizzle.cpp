// Evaluation, recast and composition of XOR swizzles.
#include "tilewright/layout/swizzle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/layout/number_form.hpp"

namespace tilewright::layout {
namespace {

int log2_of_unit(std::int64_t n) {
  if (!is_power_of_two(n)) throw InvalidArgument(fmt::format("a swizzle is recast by a power of two, got {}", n));
  return std::countr_zero(static_cast<std::uint64_t>(n));
}

std::int64_t run_of_ones(int count) { return (std::int64_t{1} << count) - 1; }
int bit_count(std::int64_t bits) { return std::popcount(static_cast<std::uint64_t>(bits)); }
int lowest_bit(std::int64_t bits) { return std::countr_zero(static_cast<std::uint64_t>(bits)); }
bool is_run(std::int64_t bits) { return bits > 0 && bits >> lowest_bit(bits) == run_of_ones(bit_count(bits)); }

}  // namespace

Swizzle::Swizzle(int bits, int base, int shift) : bits_(bits), base_(base), shift_(shift) {
  constexpr int most = 62;
  if (bits < 0 || base < 0 || base > most || shift < -most || shift > most || std::abs(shift) < bits ||
      bits + base + std::abs(shift) > most)
    throw InvalidArgument(
        fmt::format("Sw<{},{},{}> is not a swizzle: it needs 0 <= bits <= |shift| and base >= 0", bits, base, shift));
}

std::int64_t Swizzle::operator()(std::int64_t offset) const {
  const std::int64_t read = offset & source_bits(*this);
  return offset ^ (shift_ >= 0 ? read >> shift_ : read << -shift_);
}

Number Swizzle::at(const Number& offset) const {
  if (offset.is_static()) return (*this)(offset.value());
  if (offset.lower() < 0)
    throw InvalidArgument(fmt::format("{} of {}, which may be negative", to_string(*this), to_string(offset)));
  NumberScope& scope = *offset.node()->scope;
  const std::int64_t period = size(*this);
  SumForm whole;  // multiples of the period
  SumForm inner = sum_form(offset);
  inner.terms.clear();
  for (const SumTerm& term : sum_form(offset).terms) {
    const Number part = number_of(scope, {0, {term}});
    (term.factor > 0 && part.divisor() % period == 0 ? whole : inner).terms.push_back(term);
  }
  whole.constant = inner.constant > 0 ? inner.constant / period * period : 0;
  inner.constant -= whole.constant;
  const Number changed = number_of(scope, inner);
  if (changed.lower() < 0) return swizzled(offset);
  return number_of(scope, whole) + swizzled(changed);
}

Number Swizzle::swizzled(const Number& offset) const {
  if (offset.is_static()) return (*this)(offset.value());
  const std::int64_t source = source_bits(*this);
  if ((offset.bits() & static_cast<std::uint64_t>(source)) == 0) return offset;
  // swizzle(x + c) == swizzle(x) ^ c for a constant c whose bits are not read and not in x: one XOR per unrolled step.
  SumForm form = sum_form(offset);
  const std::int64_t constant = std::exchange(form.constant, 0);
  if (constant > 0 && (constant & source) == 0) {
    const Number rest = number_of(*offset.node()->scope, form);
    if (rest.lower() >= 0 && (rest.bits() & static_cast<std::uint64_t>(constant)) == 0)
      return swizzled(rest) ^ constant;
  }
  const Number read = offset & source;
  return offset ^ (shift_ >= 0 ? read >> shift_ : read << -shift_);
}

std::int64_t size(const Swizzle& swizzle) {
  return std::int64_t{1} << (swizzle.bits() + swizzle.base() + std::abs(swizzle.shift()));
}

Swizzle upcast(const Swizzle& swizzle, std::int64_t n) {
  const int shrink = log2_of_unit(n);
  if (swizzle.bits() == 0) return Swizzle(0, std::max(0, swizzle.base() - shrink), swizzle.shift());
  if (swizzle.base() < shrink)
    throw InvalidArgument(
        fmt::format("upcast of {} by {}: the swizzle permutes elements within a unit", to_string(swizzle), n));
  return Swizzle(swizzle.bits(), swizzle.base() - shrink, swizzle.shift());
}

Swizzle downcast(const Swizzle& swizzle, std::int64_t n) {
  return Swizzle(swizzle.bits(), swizzle.base() + log2_of_unit(n), swizzle.shift());
}

Swizzle recast(const Swizzle& swizzle, std::int64_t old_bits, std::int64_t new_bits) {
  const std::int64_t unit = std::gcd(old_bits, new_bits);
  if (old_bits < 1 || new_bits < 1)
    throw InvalidArgument(fmt::format("recast of {} from {} to {} bits", to_string(swizzle), old_bits, new_bits));
  return downcast(upcast(swizzle, new_bits / unit), old_bits / unit);
}

std::int64_t source_bits(const Swizzle& swizzle) {
  return run_of_ones(swizzle.bits()) << (swizzle.base() + std::max(0, swizzle.shift()));
}

std::int64_t target_bits(const Swizzle& swizzle) {
  return run_of_ones(swizzle.bits()) << (swizzle.base() + std::max(0, -swizzle.shift()));
}

Swizzle make_swizzle(std::int64_t source, std::int64_t target) {
  if (source == 0 && target == 0) return Swizzle();
  if (!is_run(source) || !is_run(target) || bit_count(source) != bit_count(target))
    throw InvalidArgument(fmt::format(
        "no swizzle reads bits {:#x} and changes {:#x}: both must be one run of ones of equal length", source, target));
  const int from = lowest_bit(source);
  const int to = lowest_bit(target);
  return Swizzle(bit_count(source), std::min(from, to), from - to);
}

Swizzle composition(const Swizzle& a, const Swizzle& b) {
  if (a.bits() == 0) return b;
  if (b.bits() == 0) return a;
  if (a.shift() != b.shift())
    throw InvalidArgument(fmt::format("composition {} o {}: shifts differ", to_string(a), to_string(b)));
  if ((target_bits(b) & source_bits(a)) != 0)
    throw InvalidArgument(
        fmt::format("composition {} o {}: the left swizzle reads bits {:#x}, which the right one changes", to_string(a),
                    to_string(b), target_bits(b) & source_bits(a)));
  return make_swizzle(source_bits(a) ^ source_bits(b), target_bits(a) ^ target_bits(b));
}

std::string to_string(const Swizzle& swizzle) {
  return fmt::format("Sw<{},{},{}>", swizzle.bits(), swizzle.base(), swizzle.shift());
}

std::int64_t size(const ComposedLayout& layout) { return size(layout.layout); }
Number size_of(const ComposedLayout& layout) { return size_of(layout.layout); }
ComposedLayout evaluate(const ComposedLayout& layout, const Bindings& bindings) {
  return {layout.swizzle, evaluate(layout.offset, bindings), evaluate(layout.layout, bindings)};
}

std::string to_string(const ComposedLayout& layout) {
  return fmt::format("{} o {} o {}", to_string(layout.swizzle), to_string(layout.offset), to_string(layout.layout));
}

}  // namespace tilewright::layout
