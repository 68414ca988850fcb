// Bit fields: the terms of an offset as masked and shifted bits of expressions, which index_code adds and swizzles.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/layout/c_expression.hpp"

namespace tilewright::layout {

/// The set of bits that may be 1 in a number.
using BitSet = std::uint64_t;

/// The bits of the numbers from 0 to count - 1.
BitSet bits_below(std::int64_t count);
/// The bits of the sum of a number with bits a and one with bits b, including carries.
BitSet sum_bits(BitSet a, BitSet b);
/// The bits shifted left; right for a negative shift.
BitSet shifted(BitSet bits, int shift);

/// How a field is written: (x >> 3 & 7) * 64, x >> 3 << 6, or x / 8 % 8 * 64.
enum class CodeStyle : std::uint8_t { arithmetic, bitwise, quotients };

/// The value ((base & mask) << shift) * factor. A negative shift is a right shift.
struct BitField {
  CExpression base = 0;
  BitSet base_bits = 0;  // the bits that base may have
  BitSet mask = 0;       // a subset of base_bits
  int variable = -1;     // the number of the variable that base is; -1: base is another expression
  int shift = 0;
  std::int64_t factor = 1;  // odd, may be negative

  /// The term stride * ((base & mask) >> position). @pre stride != 0, mask is a subset of base_bits
  static BitField term(const CExpression& base, BitSet base_bits, BitSet mask, int position, std::int64_t stride);
  /// The expression itself.
  static BitField whole(const CExpression& base, BitSet base_bits);

  bool is_negative() const { return factor < 0; }
};

/// The bits that the value may have; all bits for a negative factor.
BitSet bits_of(const BitField& field);
/// Whether two fields of the same variable differ only in their masks, so that one field with both masks replaces them.
bool differ_in_mask_only(const BitField& a, const BitField& b);

CExpression code_of(const BitField& field, CodeStyle style);

/// Adds a field to a sum, merging it with a field of the sum that differs only in its mask.
/// @pre no bit of a variable is in two fields
void add_field(std::vector<BitField>& fields, const BitField& field);
/// The sum of the fields. In the bitwise style it is their OR. @pre then no two fields share a bit and none is negative
CExpression sum_of(const std::vector<BitField>& fields, CodeStyle style);

}  // namespace tilewright::layout
