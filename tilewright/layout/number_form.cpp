// Sums and polynomials of Numbers.
#include "tilewright/layout/number_form.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tilewright::layout {
namespace {

using Wide = __int128;
using Terms = std::map<Monomial, std::int64_t>;

constexpr std::size_t kMaxTerms = 64;  // of a polynomial
constexpr int kDeepest = 5;            // substitutions in one proof
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

// Sums.

void add_term(SumForm& form, const Number& atom, std::int64_t factor) {
  if (factor == 0) return;
  const auto at = std::lower_bound(form.terms.begin(), form.terms.end(), atom,
                                   [](const SumTerm& term, const Number& x) { return precedes(term.atom, x); });
  if (at == form.terms.end() || at->atom != atom) {
    form.terms.insert(at, {atom, factor});
  } else {
    at->factor = checked_sum(at->factor, factor);
    if (at->factor == 0) form.terms.erase(at);
  }
}

void collect(SumForm& form, const Number& number, std::int64_t factor) {
  if (number.is_static()) {
    form.constant = checked_sum(form.constant, checked_product(number.value(), factor));
    return;
  }
  const NumberNode& node = *number.node();
  if (node.op == NumberOp::add || node.op == NumberOp::subtract) {
    collect(form, node.a, factor);
    collect(form, node.b, node.op == NumberOp::add ? factor : -factor);
  } else if (node.op == NumberOp::multiply && node.b.is_static()) {
    collect(form, node.a, checked_product(factor, node.b.value()));
  } else {
    add_term(form, number, factor);
  }
}

std::int64_t factor_in(const SumForm& form, const Number& atom) {
  for (const SumTerm& term : form.terms) {
    if (term.atom == atom) return term.factor;
  }
  return 0;
}

bool is_op(const Number& atom, NumberOp op) { return !atom.is_static() && atom.node()->op == op; }

/// Replaces factor * (x / c) by (factor / c) * x where the quotient is exact. Returns whether it did.
bool fold_exact_quotient(SumForm& form) {
  for (const SumTerm& term : form.terms) {
    if (!is_op(term.atom, NumberOp::divide)) continue;
    const NumberNode& node = *term.atom.node();
    if (!node.b.is_static() || term.factor % node.b.value() != 0 || node.a.divisor() % node.b.value() != 0) continue;
    const std::int64_t factor = term.factor;
    add_term(form, Number(node), -factor);
    collect(form, node.a, factor / node.b.value());
    return true;
  }
  return false;
}

/// Replaces k * (x % c) + k * c * (x / c) by k * x, and k * (x % c) + k * c * (x / c % e) by k * (x % (c * e)).
/// Returns whether it did.
bool fold_digits(SumForm& form) {
  if (form.terms.size() < 2) return false;
  for (const SumTerm& term : form.terms) {
    if (!is_op(term.atom, NumberOp::modulo)) continue;
    const NumberNode& node = *term.atom.node();
    const std::int64_t factor = term.factor;
    const Number quotient = node.a / node.b;
    const SumForm upper = sum_form(quotient * node.b);
    const bool has_upper =
        !upper.terms.empty() && std::all_of(upper.terms.begin(), upper.terms.end(), [&](const SumTerm& part) {
          Wide wanted = Wide(part.factor) * factor;
          return wanted == factor_in(form, part.atom);
        });
    if (has_upper) {
      form.add(upper, -factor);
      add_term(form, Number(node), -factor);
      collect(form, node.a, factor);
      return true;
    }
    if (!node.b.is_static()) continue;
    for (const SumTerm& next : form.terms) {
      if (!is_op(next.atom, NumberOp::modulo) || next.atom.node()->a != quotient || !next.atom.node()->b.is_static() ||
          Wide(factor) * node.b.value() != next.factor)
        continue;
      const Number joined = node.a % (node.b * next.atom.node()->b);
      const SumTerm removed = next;
      add_term(form, removed.atom, -removed.factor);
      add_term(form, Number(node), -factor);
      collect(form, joined, factor);
      return true;
    }
  }
  return false;
}

Number scaled(NumberScope& scope, const Number& atom, std::int64_t factor) {
  return factor == 1 ? atom : scope.intern(NumberOp::multiply, atom, factor);
}

// Polynomials.

void add_monomial(Terms& terms, const Monomial& monomial, std::int64_t factor, bool& fits) {
  if (factor == 0) return;
  std::int64_t& sum = terms[monomial];
  if (__builtin_add_overflow(sum, factor, &sum)) fits = false;
  if (sum == 0) terms.erase(monomial);
}

Polynomial add_scaled(const Polynomial& a, const Polynomial& b, std::int64_t factor) {
  if (!a || !b) return std::nullopt;
  Terms sum = *a;
  bool fits = true;
  for (const auto& [monomial, coefficient] : *b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(coefficient, factor, &product)) return std::nullopt;
    add_monomial(sum, monomial, product, fits);
  }
  if (!fits || sum.size() > kMaxTerms) return std::nullopt;
  return sum;
}

Monomial joined(const Monomial& a, const Monomial& b) {
  Monomial result(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), result.begin(),
             [](const NumberNode* x, const NumberNode* y) { return x->id < y->id; });
  return result;
}

Polynomial product(const Polynomial& a, const Polynomial& b) {
  if (!a || !b || a->size() * b->size() > kMaxTerms) return std::nullopt;
  Terms result;
  bool fits = true;
  for (const auto& [x, p] : *a) {
    for (const auto& [y, q] : *b) {
      std::int64_t factor = 0;
      if (__builtin_mul_overflow(p, q, &factor)) return std::nullopt;
      add_monomial(result, joined(x, y), factor, fits);
    }
  }
  if (!fits) return std::nullopt;
  return result;
}

Polynomial constant(std::int64_t value) {
  Terms terms;
  if (value != 0) terms[{}] = value;
  return terms;
}

bool is_nonnegative(const Monomial& monomial) {
  return std::all_of(monomial.begin(), monomial.end(), [](const NumberNode* x) { return x->lower >= 0; });
}

/// The smallest value by the ranges of the nodes alone.
Wide least_value(const Terms& terms) {
  constexpr Wide kFar = Wide(kMaxInt64) * 16;
  Wide least = 0;
  for (const auto& [monomial, factor] : terms) {
    if (!is_nonnegative(monomial)) return -kFar;
    Wide part = factor;
    for (const NumberNode* node : monomial) {
      part *= factor > 0 ? node->lower : node->upper;
      part = std::clamp(part, -kFar, kFar);
    }
    least = std::max(least + part, -kFar);
  }
  return least;
}

/// Proves lower bounds by replacing nodes with bounds of them.
class Proof {
 public:
  bool holds(const Polynomial& polynomial, std::int64_t bound, int depth = 0) {
    if (!polynomial || ++steps_ > 300) return false;
    if (least_value(*polynomial) >= bound) return true;
    if (depth == kDeepest) return false;
    for (const auto& [monomial, factor] : *polynomial) {
      if (!is_nonnegative(monomial)) continue;
      for (std::size_t i = 0; i < monomial.size(); ++i) {
        if (i > 0 && monomial[i] == monomial[i - 1]) continue;
        if (factor < 0 ? lowers_by_upper_bound(*polynomial, monomial, factor, i, bound, depth)
                       : lowers_by_lower_bound(*polynomial, monomial, factor, i, bound, depth))
          return true;
        // m * n >= m, because n >= 1.
        if (factor > 0 && monomial.size() > 1 && monomial[i]->lower > 0 &&
            with(*polynomial, monomial, factor, i, 1, constant(monomial[i]->lower), bound, depth))
          return true;
      }
    }
    return false;
  }

 private:
  /// Whether the proof succeeds with `factor * monomial`, divided by `divisor` and by node i of it, replaced by that
  /// quotient times `replacement`. The divisor is 1, a static integer or a node.
  bool with(const Terms& terms, const Monomial& monomial, std::int64_t factor, std::size_t i, const Number& divisor,
            const Polynomial& replacement, std::int64_t bound, int depth) {
    Monomial rest = monomial;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    std::int64_t quotient = factor;
    if (divisor.is_static()) {
      if (factor % divisor.value() != 0) return false;
      quotient = factor / divisor.value();
    } else {
      const auto at = std::find(rest.begin(), rest.end(), divisor.node());
      if (at == rest.end()) return false;
      rest.erase(at);
    }
    Terms changed = terms;
    changed.erase(monomial);
    const Polynomial scale = Terms{{rest, quotient}};
    return holds(add_scaled(changed, product(scale, replacement), 1), bound, depth + 1);
  }

  bool lowers_by_upper_bound(const Terms& terms, const Monomial& monomial, std::int64_t factor, std::size_t i,
                             std::int64_t bound, int depth) {
    const NumberNode& node = *monomial[i];
    const auto try_with = [&](const Number& divisor, const Polynomial& replacement) {
      return with(terms, monomial, factor, i, divisor, replacement, bound, depth);
    };
    switch (node.op) {
      case NumberOp::variable:
        return node.variable->count && !node.variable->count->is_static() &&
               try_with(1, add_scaled(polynomial_of(*node.variable->count), constant(1), -1));
      case NumberOp::modulo:
        return (!node.b.is_static() && try_with(1, add_scaled(polynomial_of(node.b), constant(1), -1))) ||
               try_with(1, polynomial_of(node.a));
      case NumberOp::divide:
        return try_with(node.b, polynomial_of(node.a)) || try_with(1, polynomial_of(node.a));
      case NumberOp::ceil_divide:
        return try_with(node.b,
                        add_scaled(add_scaled(polynomial_of(node.a), polynomial_of(node.b), 1), constant(1), -1));
      case NumberOp::minimum:
        return try_with(1, polynomial_of(node.a)) || try_with(1, polynomial_of(node.b));
      case NumberOp::bit_and:
        return try_with(1, polynomial_of(node.a));
      default:
        return false;
    }
  }

  bool lowers_by_lower_bound(const Terms& terms, const Monomial& monomial, std::int64_t factor, std::size_t i,
                             std::int64_t bound, int depth) {
    const NumberNode& node = *monomial[i];
    const auto try_with = [&](const Number& divisor, const Polynomial& replacement) {
      return with(terms, monomial, factor, i, divisor, replacement, bound, depth);
    };
    switch (node.op) {
      case NumberOp::divide:
        return try_with(node.b,
                        node.b.is_static() && node.a.divisor() % node.b.value() == 0
                            ? polynomial_of(node.a)
                            : add_scaled(add_scaled(polynomial_of(node.a), polynomial_of(node.b), -1), constant(1), 1));
      case NumberOp::ceil_divide:
        return try_with(node.b, polynomial_of(node.a));
      case NumberOp::maximum:
        return try_with(1, polynomial_of(node.a)) || try_with(1, polynomial_of(node.b));
      default:
        return false;
    }
  }

  int steps_ = 0;
};

}  // namespace

void SumForm::add(const SumForm& other, std::int64_t factor) {
  constant = checked_sum(constant, checked_product(other.constant, factor));
  for (const SumTerm& term : other.terms) add_term(*this, term.atom, checked_product(term.factor, factor));
}

bool precedes(const Number& a, const Number& b) {
  if (a.is_static() || b.is_static()) return !a.is_static();
  if (a.kind() != b.kind()) return a.kind() < b.kind();
  return a.node()->id < b.node()->id;
}

SumForm sum_form(const Number& number) {
  SumForm form;
  collect(form, number, 1);
  return form;
}

Number number_of(NumberScope& scope, SumForm form) {
  while (fold_exact_quotient(form) || fold_digits(form)) {
  }
  if (form.terms.empty()) return form.constant;
  std::optional<Number> sum;
  for (const SumTerm& term : form.terms) {
    if (term.factor < 0) continue;
    const Number part = scaled(scope, term.atom, term.factor);
    sum = sum ? scope.intern(NumberOp::add, *sum, part) : part;
  }
  std::int64_t constant = form.constant;
  if (!sum) sum = std::exchange(constant, 0);
  for (const SumTerm& term : form.terms) {
    if (term.factor < 0) sum = scope.intern(NumberOp::subtract, *sum, scaled(scope, term.atom, -term.factor));
  }
  if (constant > 0) return scope.intern(NumberOp::add, *sum, constant);
  return constant < 0 ? scope.intern(NumberOp::subtract, *sum, -constant) : *sum;
}

std::vector<Number> factors_of(const Number& atom) {
  std::vector<Number> factors;
  Number rest = atom;
  for (; is_op(rest, NumberOp::multiply) && !rest.node()->b.is_static(); rest = rest.node()->a)
    factors.push_back(rest.node()->b);
  factors.push_back(rest);
  std::reverse(factors.begin(), factors.end());
  return factors;
}

Number product_of_factors(NumberScope& scope, std::vector<Number> factors) {
  if (factors.empty()) return 1;
  std::sort(factors.begin(), factors.end(), precedes);
  Number product = factors.front();
  for (std::size_t i = 1; i < factors.size(); ++i) product = scope.intern(NumberOp::multiply, product, factors[i]);
  return product;
}

Polynomial polynomial_of(const Number& number) {
  if (number.is_static()) return constant(number.value());
  const NumberNode& node = *number.node();
  switch (node.op) {
    case NumberOp::add:
      return add_scaled(polynomial_of(node.a), polynomial_of(node.b), 1);
    case NumberOp::subtract:
      return add_scaled(polynomial_of(node.a), polynomial_of(node.b), -1);
    case NumberOp::multiply:
      return product(polynomial_of(node.a), polynomial_of(node.b));
    default:
      return Terms{{{&node}, 1}};
  }
}

Polynomial difference(const Polynomial& a, const Polynomial& b) { return add_scaled(a, b, -1); }

bool is_at_least(const Polynomial& polynomial, std::int64_t bound) { return Proof().holds(polynomial, bound); }

bool is_never_zero(const Polynomial& polynomial) {
  if (!polynomial) return false;
  std::int64_t common = 0;
  std::int64_t constant = 0;
  for (const auto& [monomial, factor] : *polynomial) {
    if (monomial.empty()) {
      constant = factor;
      continue;
    }
    std::int64_t divisor = factor;
    for (const NumberNode* node : monomial) {
      if (__builtin_mul_overflow(divisor, node->divisor, &divisor)) return false;
    }
    common = std::gcd(common, divisor);
  }
  return common == 0 ? constant != 0 : constant % common != 0;
}

}  // namespace tilewright::layout
