// Two normal forms of Numbers: sums, in which operators are folded, and polynomials, in which conditions are decided.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tilewright/layout/number.hpp"

namespace tilewright::layout {

/// factor * atom, where the atom is neither a sum nor a product with a constant.
struct SumTerm {
  Number atom;
  std::int64_t factor = 1;
  bool operator==(const SumTerm&) const = default;
};

/// constant + the sum of the terms, which have different atoms, earliest kind and smallest id first.
struct SumForm {
  std::int64_t constant = 0;
  std::vector<SumTerm> terms;

  void add(const SumForm& other, std::int64_t factor);
};

SumForm sum_form(const Number& number);
/// The Number of a sum. Folds c * (x / c) + x % c and exact quotients.
Number number_of(NumberScope& scope, SumForm form);

/// The factors of a product of expressions, in order: (x, y, y) for x * y * y.
std::vector<Number> factors_of(const Number& atom);
/// The product of factors in any order, and without constants; 1 for none.
Number product_of_factors(NumberScope& scope, std::vector<Number> factors);
/// The order of atoms in sums and products.
bool precedes(const Number& a, const Number& b);

/// A sum of products of nodes that are neither sums nor products, fully expanded. No value if it has too many terms or
/// a coefficient overflows: then nothing is known of it.
using Monomial = std::vector<const NumberNode*>;
using Polynomial = std::optional<std::map<Monomial, std::int64_t>>;

Polynomial polynomial_of(const Number& number);
Polynomial difference(const Polynomial& a, const Polynomial& b);
/// Whether every value is known to be at least `bound`. It uses the ranges of nodes, counts of counters, and that
/// x % c <= x, c * (x / c) <= x <= c * ceil_div(x, c), min(x, y) <= x <= max(x, y).
bool is_at_least(const Polynomial& polynomial, std::int64_t bound);
/// Whether it is 0 for no values, by a common divisor of its terms other than the constant.
bool is_never_zero(const Polynomial& polynomial);

}  // namespace tilewright::layout
