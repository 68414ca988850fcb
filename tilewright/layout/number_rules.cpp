// The operators of Numbers: how expressions are folded.
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

/// The scope of an expression. @pre a or b is not static
NumberScope& scope_of(const Number& a, const Number& b) {
  NumberScope* const first = a.is_static() ? b.node()->scope : a.node()->scope;
  if (!b.is_static() && b.node()->scope != first)
    throw InvalidArgument(
        fmt::format("{} and {} are Numbers of two scopes, which cannot be combined", to_string(a), to_string(b)));
  return *first;
}

/// "(n - 1) / m", for messages.
std::string text_of(const char* symbol, const Number& a, const Number& b) {
  const auto operand = [](const Number& number) {
    const std::string text = to_string(number);
    return text.find(' ') == std::string::npos ? text : '(' + text + ')';
  };
  return fmt::format("{} {} {}", operand(a), symbol, operand(b));
}

void require_not_negative(const char* symbol, const Number& a, const Number& b) {
  for (const Number& x : {a, b}) {
    if (x.lower() < 0)
      throw InvalidArgument(fmt::format("{}: {} may be negative (from {} to {})", text_of(symbol, a, b), to_string(x),
                                        x.lower(), x.upper()));
  }
}

void require_divisor(const char* symbol, const Number& a, const Number& b) {
  require_not_negative(symbol, a, b);
  if (b.lower() < 1)
    throw InvalidArgument(
        fmt::format("{}: the divisor may be 0 (from {} to {})", text_of(symbol, a, b), b.lower(), b.upper()));
}

bool is_op(const Number& x, NumberOp op) { return !x.is_static() && x.node()->op == op; }
bool is_known_less(const Number& a, const Number& b) {
  return a.upper() < b.lower() || is_at_least(difference(polynomial_of(b), polynomial_of(a)), 1);
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t c) { return (a % c + c) % c; }
std::int64_t floor_quotient(std::int64_t a, std::int64_t c) { return (a - floor_remainder(a, c)) / c; }

/// a * b, where x / a / b may be written as x / (a * b): not if that could overflow or make a division wider.
std::optional<Number> joint_divisor(const Number& a, const Number& b) {
  const bool fits = __int128{a.upper()} * b.upper() <= NumberScope::kMaxIndex;
  if (!fits && !(a.is_static() && b.is_static())) return std::nullopt;
  return a * b;
}

/// The factors of `factors` without those of `divisors`; no value if one of them is missing.
std::optional<std::vector<Number>> without(std::vector<Number> factors, const std::vector<Number>& divisors) {
  for (const Number& divisor : divisors) {
    const auto at = std::find(factors.begin(), factors.end(), divisor);
    if (at == factors.end()) return std::nullopt;
    factors.erase(at);
  }
  return factors;
}

/// a / f and b / f for the product f of run-time factors that b and all terms of a have in common.
struct Fraction {
  Number a;
  Number b;
  Number common = 1;
};
Fraction reduced(const Number& a, const Number& b) {
  Fraction result{a, b, 1};
  const SumForm divisor = sum_form(b);
  if (b.is_static() || divisor.terms.size() != 1 || divisor.constant != 0) return result;
  NumberScope& scope = *b.node()->scope;
  const auto divided_by = [&](const Number& x, const Number& factor) -> std::optional<Number> {
    SumForm form;
    const SumForm terms = sum_form(x);
    if (terms.constant != 0) return std::nullopt;
    for (const SumTerm& term : terms.terms) {
      auto rest = without(factors_of(term.atom), {factor});
      if (!rest) return std::nullopt;
      form.add(sum_form(product_of_factors(scope, *std::move(rest))), term.factor);
    }
    return number_of(scope, std::move(form));
  };
  for (const Number& factor : factors_of(divisor.terms.front().atom)) {
    const auto x = divided_by(result.a, factor);
    const auto y = divided_by(result.b, factor);
    if (x && y) result = {*x, *y, result.common * factor};
  }
  return result;
}

/// a == b * exact + low.
struct Split {
  SumForm exact;
  SumForm low;
};

/// atom / c for a multiple of c that is neither a sum nor a product with a constant.
Number exact_quotient(const Number& atom, std::int64_t c) {
  if (c == 1) return atom;
  const NumberNode& node = *atom.node();
  if (node.op == NumberOp::divide && node.b.is_static()) return node.a / (node.b * c);
  if (node.op == NumberOp::modulo && node.b.is_static() && node.b.value() % c == 0)
    return node.a / c % (node.b.value() / c);
  return node.scope->intern(NumberOp::divide, atom, c);
}

/// Splits a term by a static divisor. Returns whether it is a multiple.
bool split_term(const SumTerm& term, std::int64_t c, SumForm& exact) {
  const std::int64_t common = std::gcd(term.factor, c);
  const std::int64_t needed = c / common;
  if (term.atom.divisor() % needed != 0) return false;
  exact.add(sum_form(exact_quotient(term.atom, needed)), term.factor / common);
  return true;
}

Split split(const Number& a, const Number& b) {
  const SumForm form = sum_form(a);
  Split result;
  if (b.is_static()) {
    const std::int64_t c = b.value();
    for (const SumTerm& term : form.terms) {
      if (!split_term(term, c, result.exact)) result.low.terms.push_back(term);
    }
    result.low.constant = floor_remainder(form.constant, c);
    result.exact.constant = checked_sum(result.exact.constant, floor_quotient(form.constant, c));
    return result;
  }
  const SumForm divisor = sum_form(b);
  const bool is_product = divisor.terms.size() == 1 && divisor.constant == 0;
  const std::int64_t factor = is_product ? divisor.terms.front().factor : 1;
  const std::vector<Number> factors = is_product ? factors_of(divisor.terms.front().atom) : std::vector<Number>{b};
  result.low.constant = form.constant;
  for (const SumTerm& term : form.terms) {
    const auto rest = without(factors_of(term.atom), factors);
    if (rest && term.factor % factor == 0) {
      result.exact.add(sum_form(product_of_factors(*b.node()->scope, *rest)), term.factor / factor);
    } else {
      result.low.terms.push_back(term);
    }
  }
  return result;
}

bool is_zero(const SumForm& form) { return form.terms.empty() && form.constant == 0; }
bool is_single(const SumForm& form) {
  return form.terms.size() == 1 && form.constant == 0 && form.terms.front().factor == 1;
}

/// The largest divisor of c that divides the factors of all terms. Divisors of atoms are not used: m / 8 / 3 is m / 24.
std::int64_t common_divisor(const SumForm& form, std::int64_t c) {
  std::int64_t common = c;
  for (const SumTerm& term : form.terms) common = std::gcd(common, term.factor);
  return common;
}

/// (form - its constant) / g + floor(constant / g), for a divisor g of all factors.
SumForm divided(SumForm form, std::int64_t g) {
  for (SumTerm& term : form.terms) term.factor /= g;
  form.constant = floor_quotient(form.constant, g);
  return form;
}

/// low / b, where no part of `low` is a multiple of b.
Number low_quotient(NumberScope& scope, const SumForm& form, const Number& b) {
  const Number low = number_of(scope, form);
  if (is_known_less(low, b)) return 0;
  if (is_op(low, NumberOp::divide)) {
    if (const auto divisor = joint_divisor(low.node()->b, b)) return low.node()->a / *divisor;
  }
  if (b.is_static()) {
    const std::int64_t c = b.value();
    if (is_op(low, NumberOp::modulo) && low.node()->b.is_static() && low.node()->b.value() % c == 0)
      return low.node()->a / c % (low.node()->b / c);
    if (const std::int64_t g = common_divisor(form, c); g > 1) return number_of(scope, divided(form, g)) / (c / g);
  }
  return scope.intern(NumberOp::divide, low, b);
}

/// a % b, where `form` differs from a by a multiple of b.
Number low_remainder(NumberScope& scope, const Number& a, SumForm form, const Number& b) {
  if (b.is_static()) {
    for (SumTerm& term : form.terms) term.factor = floor_remainder(term.factor, b.value());
  }
  const Number low = number_of(scope, form);
  if (low.lower() < 0) return scope.intern(NumberOp::modulo, a, b);
  if (is_known_less(low, b)) return low;
  if (is_op(low, NumberOp::modulo)) {
    const Split outer = split(low.node()->b, b);
    if (is_zero(outer.low)) return low.node()->a % b;
  }
  if (b.is_static()) {
    const std::int64_t c = b.value();
    if (const std::int64_t g = common_divisor(form, c); g > 1)
      return number_of(scope, divided(form, g)) % (c / g) * g + form.constant % g;
  }
  return scope.intern(NumberOp::modulo, low, b);
}

/// The terms of a sum whose terms have no bits in common, or the whole sum.
std::vector<Number> disjoint_parts(NumberScope& scope, const Number& x) {
  const SumForm form = sum_form(x);
  std::vector<Number> parts;
  std::uint64_t seen = 0;
  if (form.constant != 0) parts.push_back(form.constant);
  for (const SumTerm& term : form.terms) parts.push_back(number_of(scope, {0, {term}}));
  for (const Number& part : parts) {
    if ((seen & part.bits()) != 0) return {x};
    seen |= part.bits();
  }
  return parts;
}

std::uint64_t bits_of(const std::vector<Number>& parts) {
  std::uint64_t bits = 0;
  for (const Number& part : parts) bits |= part.bits();
  return bits;
}

Number sum_of(const std::vector<Number>& parts) {
  Number sum = 0;
  for (const Number& part : parts) sum += part;
  return sum;
}

/// Moves the parts that have no bit in common with `bits` to `apart`.
void move_apart(std::vector<Number>& parts, std::uint64_t bits, std::vector<Number>& apart) {
  const auto first =
      std::stable_partition(parts.begin(), parts.end(), [&](const Number& x) { return (x.bits() & bits) != 0; });
  apart.insert(apart.end(), first, parts.end());
  parts.erase(first, parts.end());
}

void collect_xor(const Number& x, std::vector<Number>& operands, std::int64_t& constant) {
  if (x.is_static()) {
    constant ^= x.value();
  } else if (is_op(x, NumberOp::bit_xor)) {
    collect_xor(x.node()->a, operands, constant);
    collect_xor(x.node()->b, operands, constant);
  } else if (const auto same = std::find(operands.begin(), operands.end(), x); same != operands.end()) {
    operands.erase(same);
  } else {
    operands.push_back(x);
  }
}

Number exclusive_or(NumberScope& scope, const Number& a, const Number& b) {
  std::vector<Number> operands;
  std::int64_t constant = 0;
  collect_xor(a, operands, constant);
  collect_xor(b, operands, constant);
  std::sort(operands.begin(), operands.end(), precedes);
  if (constant != 0) operands.emplace_back(constant);
  if (operands.empty()) return 0;
  Number result = operands.front();
  for (std::size_t i = 1; i < operands.size(); ++i) result = scope.intern(NumberOp::bit_xor, result, operands[i]);
  return result;
}

Number ordered(NumberScope& scope, NumberOp op, const Number& a, const Number& b) {
  return precedes(b, a) ? scope.intern(op, b, a) : scope.intern(op, a, b);
}

/// a & (ones << low), as a digit of a.
Number run_of_bits(const Number& a, std::uint64_t mask) {
  const int low = std::countr_zero(mask);
  const std::int64_t unit = std::int64_t{1} << low;
  return a / unit % static_cast<std::int64_t>((mask >> low) + 1) * unit;
}

bool is_run(std::uint64_t mask) { return mask != 0 && is_power_of_two((mask >> std::countr_zero(mask)) + 1); }

/// 0 < x, where a product is positive if all its factors are.
Number is_positive(NumberScope& scope, const Number& x) {
  const SumForm form = sum_form(x);
  const bool is_product = form.terms.size() == 1 && form.constant == 0 && form.terms.front().factor > 0;
  const std::vector<Number> factors = is_product ? factors_of(form.terms.front().atom) : std::vector<Number>{x};
  const bool is_nonnegative =
      std::all_of(factors.begin(), factors.end(), [](const Number& f) { return f.lower() >= 0; });
  if (!is_product || !is_nonnegative) return scope.intern(NumberOp::less, 0, x);
  Number all = 1;
  for (const Number& factor : factors) {
    if (factor.lower() >= 1) continue;
    const bool is_quotient = is_op(factor, NumberOp::divide) && factor.node()->b.is_static();
    all = all & (is_quotient ? less(factor.node()->b - 1, factor.node()->a) : scope.intern(NumberOp::less, 0, factor));
  }
  return all;
}

int checked_shift(const Number& b) {
  if (b.value() < 0 || b.value() > 62)
    throw InvalidArgument(fmt::format("a shift is by 0 to 62 bits, got {}", b.value()));
  return static_cast<int>(b.value());
}

void require_shift(const char* symbol, const Number& a, const Number& b) {
  require_not_negative(symbol, a, b);
  if (b.upper() > 62)
    throw InvalidArgument(fmt::format("{} {} {}: the shift may be by {} bits, at most 62 are possible", to_string(a),
                                      symbol, to_string(b), b.upper()));
}

}  // namespace

Number Number::sum(const Number& a, const Number& b) {
  NumberScope& scope = scope_of(a, b);
  SumForm form = sum_form(a);
  form.add(sum_form(b), 1);
  return number_of(scope, std::move(form));
}

Number Number::difference(const Number& a, const Number& b) {
  if (are_static(a, b)) detail::refuse_sum(a.value_, b.value_);
  NumberScope& scope = scope_of(a, b);
  SumForm form = sum_form(a);
  form.add(sum_form(b), -1);
  return number_of(scope, std::move(form));
}

Number Number::product(const Number& a, const Number& b) {
  NumberScope& scope = scope_of(a, b);
  if (a.is_static() || b.is_static()) {
    SumForm form;
    form.add(sum_form(a.is_static() ? b : a), a.is_static() ? a.value() : b.value());
    return number_of(scope, std::move(form));
  }
  // Sums of launch values are multiplied out, so that sizes are sums of products; those of the kernel are not, because
  // a thread would compute more products.
  const SumForm left = sum_form(a);
  const SumForm right = sum_form(b);
  const auto count = [](const SumForm& form) { return form.terms.size() + (form.constant == 0 ? 0 : 1); };
  if (a.kind() <= NumberKind::launch && b.kind() <= NumberKind::launch && count(left) * count(right) > 1 &&
      count(left) * count(right) <= 16) {
    SumForm expanded;
    expanded.add(left, right.constant);
    expanded.add({0, right.terms}, left.constant);
    for (const SumTerm& x : left.terms) {
      for (const SumTerm& y : right.terms) expanded.add(sum_form(x.atom * y.atom), checked_product(x.factor, y.factor));
    }
    return number_of(scope, std::move(expanded));
  }
  std::int64_t factor = 1;
  std::vector<Number> factors;
  for (const Number& x : {a, b}) {
    SumForm form = sum_form(x);
    std::int64_t content = form.constant;
    for (const SumTerm& term : form.terms) content = std::gcd(content, term.factor);
    if (form.terms.size() == 1 && form.constant == 0) content = form.terms.front().factor;
    factor = checked_product(factor, content);
    form.constant /= content;
    for (SumTerm& term : form.terms) term.factor /= content;
    const std::vector<Number> more =
        is_single(form) ? factors_of(form.terms.front().atom) : std::vector<Number>{number_of(scope, std::move(form))};
    factors.insert(factors.end(), more.begin(), more.end());
  }
  SumForm form;
  form.add(sum_form(product_of_factors(scope, std::move(factors))), factor);
  return number_of(scope, std::move(form));
}

Number Number::quotient(const Number& a, const Number& b) {
  if (are_static(a, b) && b.value_ != 0) return a.value_ == kLeast ? a : Number(a.value_ / b.value_);
  require_divisor("/", a, b);
  if (b.is_static(1)) return a;
  NumberScope& scope = scope_of(a, b);
  if (is_known_less(a, b)) return 0;
  if (const Fraction fraction = reduced(a, b); fraction.common != 1) return fraction.a / fraction.b;
  const Split parts = split(a, b);
  if (is_zero(parts.low)) return number_of(scope, parts.exact);
  if (is_zero(parts.exact) || number_of(scope, parts.low).lower() < 0) return low_quotient(scope, sum_form(a), b);
  return number_of(scope, parts.exact) + low_quotient(scope, parts.low, b);
}

Number Number::remainder(const Number& a, const Number& b) {
  if (are_static(a, b) && b.value_ != 0) return b.value_ == -1 ? Number(0) : Number(a.value_ % b.value_);
  require_divisor("%", a, b);
  if (b.is_static(1)) return 0;
  NumberScope& scope = scope_of(a, b);
  if (is_known_less(a, b)) return a;
  if (const Fraction fraction = reduced(a, b); fraction.common != 1) return fraction.a % fraction.b * fraction.common;
  const Split parts = split(a, b);
  if (is_zero(parts.low)) return 0;
  return low_remainder(scope, a, parts.low, b);
}

Number detail::ceil_div(const Number& a, const Number& b) {
  if (a.is_static() && b.is_static()) throw InvalidArgument(fmt::format("ceil_div of {} by {}", a.value(), b.value()));
  require_divisor("ceil_div", a, b);
  if (b.is_static(1)) return a;
  NumberScope& scope = scope_of(a, b);
  if (const Fraction fraction = reduced(a, b); fraction.common != 1) return layout::ceil_div(fraction.a, fraction.b);
  const Split parts = split(a, b);
  if (is_zero(parts.low)) return number_of(scope, parts.exact);
  const Number rest = number_of(scope, parts.low);
  if (!is_zero(parts.exact) && rest.lower() >= 0) return number_of(scope, parts.exact) + layout::ceil_div(rest, b);
  if (a.lower() >= 1 && is_known_less(a, b + 1)) return 1;
  if (is_op(a, NumberOp::ceil_divide)) {
    if (const auto divisor = joint_divisor(a.node()->b, b)) return layout::ceil_div(a.node()->a, *divisor);
  }
  if (b.is_static()) {
    const SumForm form = sum_form(a);
    const std::int64_t g = common_divisor(form, b.value());
    if (g > 1 && form.constant % g == 0) return layout::ceil_div(number_of(scope, divided(form, g)), b.value() / g);
  }
  return scope.intern(NumberOp::ceil_divide, a, b);
}

Number minimum(const Number& a, const Number& b) {
  if (a.is_static() && b.is_static()) return std::min(a.value(), b.value());
  NumberScope& scope = scope_of(a, b);
  if (holds(less_equal(a, b))) return a;
  if (holds(less_equal(b, a))) return b;
  if (is_op(a, NumberOp::minimum) && a.node()->b.is_static() && b.is_static())
    return minimum(a.node()->a, minimum(a.node()->b, b));
  return ordered(scope, NumberOp::minimum, a, b);
}

Number maximum(const Number& a, const Number& b) {
  if (a.is_static() && b.is_static()) return std::max(a.value(), b.value());
  NumberScope& scope = scope_of(a, b);
  if (holds(less_equal(a, b))) return b;
  if (holds(less_equal(b, a))) return a;
  if (is_op(a, NumberOp::maximum) && a.node()->b.is_static() && b.is_static())
    return maximum(a.node()->a, maximum(a.node()->b, b));
  return ordered(scope, NumberOp::maximum, a, b);
}

Number detail::magnitude(const Number& a) {
  if (a.is_static()) return a * -1;
  if (a.lower() < 0) throw InvalidArgument(fmt::format("the magnitude of {}, which may be negative", to_string(a)));
  return a;
}

Number detail::less(const Number& a, const Number& b) {
  NumberScope& scope = scope_of(a, b);
  if (is_known_less(a, b)) return 1;
  if (is_at_least(difference(polynomial_of(a), polynomial_of(b)), 0)) return 0;
  if (a == 0) return is_positive(scope, b);
  if (a.is_static() && is_op(b, NumberOp::divide) && b.node()->b.is_static())  // c < x / d: (c + 1) * d <= x
    return layout::less((a + 1) * b.node()->b - 1, b.node()->a);
  if (a.is_static() || b.is_static()) return scope.intern(NumberOp::less, a, b);
  SumForm apart = sum_form(b);  // m + 8 < n + 8 is m < n
  apart.add(sum_form(a), -1);
  SumForm low;
  SumForm high;
  (apart.constant < 0 ? low : high).constant = std::abs(apart.constant);
  for (const SumTerm& term : apart.terms)
    (term.factor < 0 ? low : high).terms.push_back({term.atom, std::abs(term.factor)});
  return scope.intern(NumberOp::less, number_of(scope, low), number_of(scope, high));
}

Number detail::equal(const Number& a, const Number& b) {
  if (a == b) return 1;
  NumberScope& scope = scope_of(a, b);
  const Polynomial apart = difference(polynomial_of(a), polynomial_of(b));
  if (apart && apart->empty()) return 1;
  if (is_never_zero(apart) || is_at_least(apart, 1) || is_at_least(difference(polynomial_of(b), polynomial_of(a)), 1))
    return 0;
  return ordered(scope, NumberOp::equal, a, b);
}

Number truth(const Number& number) {
  if (number.is_static()) return number.value() != 0 ? 1 : 0;
  if (number.lower() >= 0 && number.upper() <= 1) return number;
  return number.lower() >= 0 ? less(0, number) : negation(equal(number, 0));
}

Number both(const Number& a, const Number& b) { return truth(a) & truth(b); }

Number negation(const Number& condition) {
  if (condition.is_static()) return condition.value() == 0 ? 1 : 0;
  if (is_op(condition, NumberOp::less)) return less_equal(condition.node()->b, condition.node()->a);
  return equal(condition, 0);
}

Number select(const Number& condition, const Number& a, const Number& b) {
  const Decision decision = decide(condition);
  if (decision != Decision::unknown || a == b) return decision == Decision::no ? b : a;
  NumberScope& scope = *condition.node()->scope;
  if (!a.is_static()) (void)scope_of(condition, a);
  if (!b.is_static()) (void)scope_of(condition, b);
  return scope.intern(NumberOp::select, a, b, condition);
}

Number operator<<(const Number& a, const Number& b) {
  if (b.is_static()) return a * (std::int64_t{1} << checked_shift(b));
  require_shift("<<", a, b);
  return scope_of(a, b).intern(NumberOp::left, a, b);
}

Number operator>>(const Number& a, const Number& b) {
  if (a.is_static() && b.is_static()) return a.value() >> checked_shift(b);
  if (b.is_static()) return a / (std::int64_t{1} << checked_shift(b));
  require_shift(">>", a, b);
  return scope_of(a, b).intern(NumberOp::right, a, b);
}

Number operator&(const Number& a, const Number& b) {
  if (a.is_static() && b.is_static()) return a.value() & b.value();
  require_not_negative("&", a, b);
  if (a == b) return a;
  if ((a.bits() & b.bits()) == 0) return 0;
  if (a.is_static()) return b & a;
  NumberScope& scope = scope_of(a, b);
  if (!b.is_static()) return ordered(scope, NumberOp::bit_and, a, b);
  const std::uint64_t mask = b.bits();
  if ((a.bits() & ~mask) == 0) return a;
  if (is_run(mask)) return run_of_bits(a, mask);
  const std::vector<Number> parts = disjoint_parts(scope, a);
  if (parts.size() == 1) return scope.intern(NumberOp::bit_and, a, b);
  Number sum = 0;
  for (const Number& part : parts) sum += part & b;
  return sum;
}

Number operator^(const Number& a, const Number& b) {
  if (a.is_static() && b.is_static()) return a.value() ^ b.value();
  require_not_negative("^", a, b);
  NumberScope& scope = scope_of(a, b);
  std::vector<Number> left = disjoint_parts(scope, a);
  std::vector<Number> right = disjoint_parts(scope, b);
  for (auto part = left.begin(); part != left.end();) {
    const auto same = std::find(right.begin(), right.end(), *part);
    if (same == right.end()) {
      ++part;
    } else {
      right.erase(same);
      part = left.erase(part);
    }
  }
  std::vector<Number> apart;
  move_apart(left, bits_of(right), apart);
  move_apart(right, bits_of(left), apart);
  const Number mixed =
      left.empty() || right.empty() ? sum_of(left) + sum_of(right) : exclusive_or(scope, sum_of(left), sum_of(right));
  return mixed + sum_of(apart);
}

Number operator|(const Number& a, const Number& b) {
  if (a.is_static() && b.is_static()) return a.value() | b.value();
  require_not_negative("|", a, b);
  if (a == b) return a;
  if ((a.bits() & b.bits()) == 0) return a + b;
  return ordered(scope_of(a, b), NumberOp::bit_or, a, b);
}

}  // namespace tilewright::layout
