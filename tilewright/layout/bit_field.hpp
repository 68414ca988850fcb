// Terms of an offset as bits of expressions that move to their places: what index_code adds up and swizzles.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/layout/c_expression.hpp"

namespace tilewright::layout {

/// The bits that a number may have set.
using BitSet = std::uint64_t;

/// Of numbers 0 to count - 1.
BitSet bits_below(std::int64_t count);
/// Of the sum of two numbers. Where they share no bit, nothing carries.
BitSet sum_bits(BitSet a, BitSet b);
/// The bits moved up, or down for a negative shift.
BitSet moved(BitSet bits, int shift);

/// Two ways to write the same field: (x >> 3) * 64, or x >> 3 << 6.
enum class CodeStyle : std::uint8_t { arithmetic, bitwise };

/// The value ((base & mask) << shift) * factor, where a negative shift is one down.
struct BitField {
  CExpression base = 0;
  BitSet base_bits = 0;  // that base may have
  BitSet mask = 0;       // of base_bits
  int variable = -1;     // base is that variable; -1: base is any expression
  int shift = 0;
  std::int64_t factor = 1;  // odd, perhaps negative

  /// The term stride * ((base & mask) >> position). @pre stride != 0, mask is a part of base_bits
  static BitField term(const CExpression& base, BitSet base_bits, BitSet mask, int position, std::int64_t stride);
  /// All of an expression.
  static BitField whole(const CExpression& base, BitSet base_bits);

  bool is_negative() const { return factor < 0; }
};

/// Bits that the value may have. All of them for a negative factor.
BitSet bits_of(const BitField& field);
/// Whether two fields are the same move of the same variable, so that their masks may be united.
bool is_same_move(const BitField& a, const BitField& b);

CExpression code_of(const BitField& field, CodeStyle style);

/// Adds a field to a sum: to the mask of one that makes the same move, if there is one.
/// @pre fields of one variable have no bit of it twice
void add_field(std::vector<BitField>& fields, const BitField& field);
/// The sum; in the bitwise style an |, for which @pre no two fields share a bit and none is negative.
CExpression sum_of(const std::vector<BitField>& fields, CodeStyle style);

}  // namespace tilewright::layout
