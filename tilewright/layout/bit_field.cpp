#include "tilewright/layout/bit_field.hpp"

#include <algorithm>
#include <bit>

namespace tilewright::layout {
namespace {

BitSet ones(int count) { return count >= 64 ? ~BitSet{0} : (BitSet{1} << count) - 1; }

int width(BitSet bits) { return static_cast<int>(std::bit_width(bits)); }

BitSet product_bits(BitSet bits, std::uint64_t factor) {
  BitSet product = 0;
  for (; factor != 0; factor &= factor - 1) product = sum_bits(product, bits << std::countr_zero(factor));
  return product;
}

/// Whether a right shift to the lowest masked bit leaves the masked bits only.
bool is_top(const BitField& field) {
  const int lowest = std::countr_zero(field.mask);
  return lowest < 64 && field.mask == (field.base_bits & ~ones(lowest));
}

/// An expression, and the left shift that it still needs.
struct Selection {
  CExpression code;
  int left = 0;
};

CExpression constant(BitSet bits) { return static_cast<std::int64_t>(bits); }

/// Selects the masked bits with the fewest operations, including the right shift if the field has one.
Selection select(const BitField& field) {
  const int lowest = std::countr_zero(field.mask);
  const bool stays = field.shift == 0 && field.factor == 1;  // an AND alone is enough
  if (is_top(field) && lowest > 0 && !stays) return {field.base >> lowest, lowest + field.shift};
  // If there is a multiplication anyway, shift all the way down and let the factor do the rest: (x >> 5 & 1) * 12.
  const int right = field.factor != 1 && field.shift < 0 ? lowest : std::max(-field.shift, 0);
  const CExpression code = field.base >> right;
  const BitSet wanted = field.mask >> right;
  const bool is_masked = wanted != field.base_bits >> right;
  return {is_masked ? code & constant(wanted) : code, field.shift + right};
}

}  // namespace

BitSet bits_below(std::int64_t count) { return count <= 1 ? 0 : ones(width(static_cast<BitSet>(count - 1))); }

BitSet sum_bits(BitSet a, BitSet b) {
  const BitSet shared = a & b;
  if (shared == 0) return a | b;
  const BitSet no_carry = (shared & -shared) - 1;  // the bits below the lowest shared bit
  return ((a | b) & no_carry) | (ones(width(a + b)) & ~no_carry);
}

BitSet shifted(BitSet bits, int shift) { return shift >= 0 ? bits << shift : bits >> -shift; }

BitField BitField::term(const CExpression& base, BitSet base_bits, BitSet mask, int position, std::int64_t stride) {
  const int up = std::countr_zero(static_cast<std::uint64_t>(stride));
  BitField field = whole(base, base_bits);
  field.mask = mask;
  field.shift = up - position;
  field.factor = stride / (std::int64_t{1} << up);
  return field;
}

BitField BitField::whole(const CExpression& base, BitSet base_bits) {
  BitField field;
  field.base = base;
  field.base_bits = field.mask = base_bits;
  return field;
}

BitSet bits_of(const BitField& field) {
  if (field.is_negative()) return ~BitSet{0};
  return product_bits(shifted(field.mask, field.shift), static_cast<std::uint64_t>(field.factor));
}

bool differ_in_mask_only(const BitField& a, const BitField& b) {
  return a.variable >= 0 && a.variable == b.variable && a.shift == b.shift && a.factor == b.factor;
}

/// The masked bits, which are one run, as a digit of the base: base / 4 % 8.
Selection select_digit(const BitField& field) {
  const int lowest = std::countr_zero(field.mask);
  const CExpression digits = lowest == 0 ? field.base : field.base / (std::int64_t{1} << lowest);
  const std::int64_t values = static_cast<std::int64_t>(field.mask >> lowest) + 1;
  return {is_top(field) ? digits : digits % values, lowest + field.shift};
}

bool is_one_run(BitSet mask) {
  return mask != 0 && std::has_single_bit((mask >> std::countr_zero(mask)) + 1) && width(mask) < 62;
}

CExpression code_of(const BitField& field, CodeStyle style) {
  const bool is_digit = style == CodeStyle::quotients && is_one_run(field.mask);
  const auto [code, left] = is_digit ? select_digit(field) : select(field);
  if (style == CodeStyle::bitwise && field.factor == 1) return code << left;
  return code * (field.factor * (std::int64_t{1} << left));
}

void add_field(std::vector<BitField>& fields, const BitField& field) {
  const auto same =
      std::find_if(fields.begin(), fields.end(), [&](const BitField& x) { return differ_in_mask_only(x, field); });
  if (same == fields.end()) {
    fields.push_back(field);
  } else {
    same->mask |= field.mask;
  }
}

CExpression sum_of(const std::vector<BitField>& fields, CodeStyle style) {
  CExpression sum = 0;
  for (const BitField& field : fields) {
    if (field.is_negative()) continue;
    const CExpression term = code_of(field, style);
    sum = style == CodeStyle::bitwise ? sum | term : sum + term;
  }
  for (BitField field : fields) {
    if (!field.is_negative()) continue;
    const bool is_first = sum.is_constant(0);
    if (!is_first) field.factor = -field.factor;
    const CExpression term = code_of(field, style);
    sum = is_first ? term : sum - term;
  }
  return sum;
}

}  // namespace tilewright::layout
