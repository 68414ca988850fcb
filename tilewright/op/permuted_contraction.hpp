// A contraction whose operands are first copied to an order of modes in which they are plain matrices.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/op/contraction.hpp"
#include "tilewright/op/permutation.hpp"

namespace tilewright::op {

/// The operands that are copied. A copy of D is made after the product, and of C, if the call reads it, with D.
struct PermutedOperands {
  bool a = false, b = false, d = false;

  bool any() const { return a || b || d; }
  bool operator==(const PermutedOperands&) const = default;
};

/// "a", "ab", "abd"
std::string to_string(const PermutedOperands& operands);

/// One copy of a permuted contraction.
struct OperandCopy {
  std::string_view role;  // "A", "B", "C" or "D"
  Permutation permutation;
  bool is_used = true;  // whether this call reads the operand
  std::string order;    // the modes of the copy, fastest first: "mn|ij" has rows along m and n
};

struct PermutedContraction {
  Contraction inner;                 // of the copies
  std::vector<OperandCopy> before;   // of A, B and C
  std::vector<OperandCopy> after;    // of D
  std::int64_t workspace_bytes = 0;  // of all copies
};

/// Whether an operand is no plain matrix or batch, so that a copy may help. @pre validate(contraction)
bool has_folded_operands(const Contraction& contraction);

/// The contraction with copies of `operands` in a workspace at `workspace`, which is a multiple of 256 bytes. Orders of
/// modes are those of the operands that are not copied. Rows of copies begin at multiples of 16 bytes. Refused: a
/// pattern of broadcast that no copy makes a matrix, tensors of the epilogue that do not lie in the new order, and
/// copies of more than `max_bytes`. @pre validate(contraction), operands.any()
Result<PermutedContraction> permute(const Contraction& contraction, const PermutedOperands& operands,
                                    std::uint64_t workspace, std::int64_t max_bytes);

}  // namespace tilewright::op
