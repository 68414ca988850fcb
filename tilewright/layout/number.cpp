// Scopes, nodes and their ranges, and evaluation of Numbers. The rules of folding are in number_rules.cpp.
#include "tilewright/layout/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

#include "tilewright/base/error.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/layout/number_form.hpp"

namespace tilewright::layout {
namespace {

using Wide = __int128;
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

std::int64_t saturated(Wide value) {
  if (value > kMaxInt64) return kMaxInt64;
  return value < -Wide(kMaxInt64) ? -kMaxInt64 : static_cast<std::int64_t>(value);
}

std::int64_t saturated_product(std::int64_t a, std::int64_t b) { return saturated(Wide(a) * b); }

/// The bits of the numbers from 0 to `upper` that are multiples of `divisor`.
std::uint64_t bits_of_range(std::int64_t upper, std::int64_t divisor) {
  const int width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(upper)));
  const std::uint64_t all = (std::uint64_t{1} << width) - 1;
  return divisor == 0 ? all : all & (~std::uint64_t{0} << std::countr_zero(static_cast<std::uint64_t>(divisor)));
}

/// The bits of the sum of a number with bits a and one with bits b, including carries.
std::uint64_t bits_of_sum(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t shared = a & b;
  if (shared == 0) return a | b;
  const std::uint64_t below = (shared & -shared) - 1;
  return ((a | b) & below) | ~below;
}

bool is_power_of_two(const Number& n) { return n.is_static() && tilewright::is_power_of_two(n.value()); }

int log2(const Number& n) { return std::countr_zero(static_cast<std::uint64_t>(n.value())); }

/// A divisor of a * b.
std::int64_t divisor_of_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::max(a, b) : product;
}

void set_range(NumberNode& node, std::int64_t lower, std::int64_t upper) {
  node.lower = lower;
  node.upper = upper;
}

/// Sets divisor and range of a node from those of its operands.
void set_facts(NumberNode& node) {
  const Number& a = node.a;
  const Number& b = node.b;
  const std::int64_t common = std::gcd(a.divisor(), b.divisor());
  node.divisor = 1;
  switch (node.op) {
    case NumberOp::variable:
      return;
    case NumberOp::add:
    case NumberOp::subtract: {
      const bool adds = node.op == NumberOp::add;
      node.divisor = common;
      set_range(node, saturated(Wide(a.lower()) + (adds ? Wide(b.lower()) : -Wide(b.upper()))),
                saturated(Wide(a.upper()) + (adds ? Wide(b.upper()) : -Wide(b.lower()))));
      return;
    }
    case NumberOp::multiply: {
      node.divisor = divisor_of_product(a.divisor(), b.divisor());
      const auto [least, most] =
          std::minmax({saturated_product(a.lower(), b.lower()), saturated_product(a.lower(), b.upper()),
                       saturated_product(a.upper(), b.lower()), saturated_product(a.upper(), b.upper())});
      set_range(node, least, most);
      return;
    }
    case NumberOp::divide:
      if (b.is_static() && a.divisor() % b.value() == 0) node.divisor = a.divisor() / b.value();
      set_range(node, a.lower() / b.upper(), a.upper() / b.lower());
      return;
    case NumberOp::ceil_divide:
      set_range(node, ceil_div(Number(a.lower()), b.upper()).value(), ceil_div(Number(a.upper()), b.lower()).value());
      return;
    case NumberOp::modulo:
      node.divisor = common;
      set_range(node, 0, std::min(a.upper(), b.upper() - 1));
      return;
    case NumberOp::minimum:
      node.divisor = common;
      set_range(node, std::min(a.lower(), b.lower()), std::min(a.upper(), b.upper()));
      return;
    case NumberOp::maximum:
      node.divisor = common;
      set_range(node, std::max(a.lower(), b.lower()), std::max(a.upper(), b.upper()));
      return;
    case NumberOp::select:
      node.divisor = common;
      set_range(node, std::min(a.lower(), b.lower()), std::max(a.upper(), b.upper()));
      return;
    case NumberOp::left:
      node.divisor = a.divisor();
      set_range(node, saturated(Wide(a.lower()) << std::min<std::int64_t>(b.lower(), 62)),
                saturated(Wide(a.upper()) << std::min<std::int64_t>(b.upper(), 63)));
      return;
    case NumberOp::right:
      set_range(node, a.lower() >> std::min<std::int64_t>(b.upper(), 63), a.upper() >> b.lower());
      return;
    case NumberOp::bit_and:
      set_range(node, 0, std::min(a.upper(), b.upper()));
      return;
    case NumberOp::bit_or:
    case NumberOp::bit_xor:
      set_range(node, node.op == NumberOp::bit_or ? std::max(a.lower(), b.lower()) : 0,
                static_cast<std::int64_t>(bits_of_range(std::max(a.upper(), b.upper()), 1)));
      return;
    case NumberOp::less:
    case NumberOp::equal:
      set_range(node, 0, 1);
      return;
  }
}

/// The bits that the operation may set, without its range.
std::uint64_t bits_of_operation(const NumberNode& node) {
  const std::uint64_t a = node.a.bits();
  const std::uint64_t b = node.b.bits();
  switch (node.op) {
    case NumberOp::add:
      return bits_of_sum(a, b);
    case NumberOp::multiply: {
      if (!node.b.is_static() || node.b.value() < 0) return ~std::uint64_t{0};
      std::uint64_t bits = 0;
      for (std::uint64_t factor = b; factor != 0; factor &= factor - 1)
        bits = bits_of_sum(bits, a << std::countr_zero(factor));
      return bits;
    }
    case NumberOp::divide:
      return is_power_of_two(node.b) ? a >> log2(node.b) : ~std::uint64_t{0};
    case NumberOp::modulo:
      return is_power_of_two(node.b) ? a & (static_cast<std::uint64_t>(node.b.value()) - 1) : ~std::uint64_t{0};
    case NumberOp::minimum:
    case NumberOp::maximum:
    case NumberOp::select:
    case NumberOp::bit_or:
    case NumberOp::bit_xor:
      return a | b;
    case NumberOp::bit_and:
      return a & b;
    default:
      return ~std::uint64_t{0};
  }
}

void set_bits(NumberNode& node) {
  node.bits = ~std::uint64_t{0};
  if (node.lower >= 0) node.bits = bits_of_operation(node) & bits_of_range(node.upper, node.divisor);
}

std::size_t mixed(std::size_t hash, std::uint64_t value) { return (hash ^ value) * 0x9E3779B97F4A7C15U ^ (hash >> 29); }

std::size_t hash_of(std::size_t hash, const Number& n) {
  return n.is_static() ? mixed(hash, static_cast<std::uint64_t>(n.value())) : mixed(hash + 1, n.node()->id);
}

/// Evaluates each node of a DAG once.
class Evaluator {
 public:
  explicit Evaluator(const Bindings& bindings) : bindings_(bindings) {}

  std::int64_t operator()(const Number& number) {
    if (number.is_static()) return number.value();
    const NumberNode& node = *number.node();
    if (const auto known = values_.find(&node); known != values_.end()) return known->second;
    const std::int64_t value = node.op == NumberOp::variable ? value_of_variable(node) : value_of(node);
    values_.emplace(&node, value);
    return value;
  }

 private:
  std::int64_t value_of_variable(const NumberNode& node) {
    const std::int64_t value = bindings_[node];
    if (!node.variable->count) return value;
    const std::int64_t count = (*this)(*node.variable->count);
    if (value >= count)
      throw InvalidArgument(fmt::format("{} = {} must be less than {} = {}", node.variable->name, value,
                                        to_string(*node.variable->count), count));
    return value;
  }

  std::int64_t value_of(const NumberNode& node) {
    if (node.op == NumberOp::select) return (*this)(node.c) != 0 ? (*this)(node.a) : (*this)(node.b);
    const std::int64_t a = (*this)(node.a);
    const std::int64_t b = (*this)(node.b);
    switch (node.op) {
      case NumberOp::add:
        return checked_sum(a, b);
      case NumberOp::subtract:
        return checked_sum(a, -b);
      case NumberOp::multiply:
        return checked_product(a, b);
      case NumberOp::divide:
        return (Number(a) / b).value();
      case NumberOp::ceil_divide:
        return ceil_div(Number(a), b).value();
      case NumberOp::modulo:
        return (Number(a) % b).value();
      case NumberOp::minimum:
        return std::min(a, b);
      case NumberOp::maximum:
        return std::max(a, b);
      case NumberOp::left:
        return (Number(a) << b).value();
      case NumberOp::right:
        return (Number(a) >> b).value();
      case NumberOp::bit_and:
        return a & b;
      case NumberOp::bit_xor:
        return a ^ b;
      case NumberOp::bit_or:
        return a | b;
      case NumberOp::less:
        return a < b ? 1 : 0;
      case NumberOp::equal:
        return a == b ? 1 : 0;
      case NumberOp::variable:
      case NumberOp::select:
        break;
    }
    return 0;
  }

  const Bindings& bindings_;
  std::unordered_map<const NumberNode*, std::int64_t> values_;
};

}  // namespace

namespace detail {
void refuse_product(std::int64_t a, std::int64_t b) {
  throw InvalidArgument(fmt::format("{} * {} does not fit in 63 bits", a, b));
}
void refuse_sum(std::int64_t a, std::int64_t b) {
  throw InvalidArgument(fmt::format("{} + {} does not fit in 63 bits", a, b));
}
}  // namespace detail

void Number::refuse_value() const {
  throw InvalidArgument(fmt::format("{} is known only at run time where a static integer is needed", to_string(*this)));
}

NumberKind Number::kind() const { return node_ == nullptr ? NumberKind::fixed : node_->kind; }
std::int64_t Number::divisor() const {
  if (node_ != nullptr) return node_->divisor;
  return value_ == kLeast ? 1 : std::abs(value_);
}
std::int64_t Number::lower_of_node() const { return node_->lower; }
std::int64_t Number::upper_of_node() const { return node_->upper; }
std::uint64_t Number::bits() const { return node_ == nullptr ? static_cast<std::uint64_t>(value_) : node_->bits; }

std::size_t NumberScope::KeyHash::operator()(const Key& key) const {
  return hash_of(hash_of(hash_of(static_cast<std::size_t>(key.op), key.a), key.b), key.c);
}

Number NumberScope::declare(NumberVariable variable) {
  if (variable.divisor < 1)
    throw InvalidArgument(fmt::format("{}: the divisor must be at least 1, got {}", variable.name, variable.divisor));
  if (variable.lower < 0 || variable.lower > variable.upper)
    throw InvalidArgument(
        fmt::format("{}: the range {} to {} is empty or negative", variable.name, variable.lower, variable.upper));
  const std::int64_t rest = variable.lower % variable.divisor;
  if (rest != 0) variable.lower = checked_sum(variable.lower, variable.divisor - rest);
  variable.upper -= variable.upper % variable.divisor;
  if (variable.lower > variable.upper)
    throw InvalidArgument(fmt::format("{}: no multiple of {} is in its range", variable.name, variable.divisor));
  for (const NumberVariable& other : declared_) {
    if (other.name == variable.name) throw InvalidArgument(fmt::format("the name {} is taken", variable.name));
  }
  const NumberVariable& kept = declared_.emplace_back(std::move(variable));
  NumberNode& node = nodes_.emplace_back();
  node.id = static_cast<std::uint32_t>(nodes_.size());
  node.kind = kept.kind;
  node.divisor = kept.divisor;
  set_range(node, kept.lower, kept.upper);
  node.variable = &kept;
  node.scope = this;
  set_bits(node);
  variables_.push_back(Number(node));
  return variables_.back();
}

Number NumberScope::launch(const std::string& name, std::int64_t divisor, std::int64_t lower, std::int64_t upper) {
  return declare({name, NumberKind::launch, divisor, lower, upper, {}});
}

Number NumberScope::kernel(const std::string& name, const Number& count, std::int64_t divisor) {
  if (count.kind() > NumberKind::launch)
    throw InvalidArgument(
        fmt::format("{}: its count {} must be known at launch, as a grid or a block is", name, to_string(count)));
  if (count.upper() < 1)
    throw InvalidArgument(fmt::format("{}: its count must be at least 1, got {}", name, to_string(count)));
  return declare({name, NumberKind::kernel, divisor, 0, count.upper() - 1, count});
}

Number NumberScope::loop(const std::string& name, const Number& count, std::int64_t divisor, std::int64_t lower) {
  if (count.upper() < 1)
    throw InvalidArgument(fmt::format("{}: its count must be at least 1, got {}", name, to_string(count)));
  return declare({name, NumberKind::loop, divisor, lower, count.upper() - 1, count});
}

Number NumberScope::intern(NumberOp op, const Number& a, const Number& b, const Number& c) {
  const Key key{op, a, b, c};
  if (const auto known = interned_.find(key); known != interned_.end()) return Number(*known->second);
  NumberNode& node = nodes_.emplace_back();
  node.op = op;
  node.kind = std::max({a.kind(), b.kind(), c.kind()});
  node.id = static_cast<std::uint32_t>(nodes_.size());
  node.a = a;
  node.b = b;
  node.c = c;
  node.scope = this;
  set_facts(node);
  interned_.emplace(key, &node);
  const bool is_sum = op == NumberOp::add || op == NumberOp::subtract;
  if (is_sum && node.lower < 0 && is_at_least(polynomial_of(Number(node)), 0)) node.lower = 0;
  set_bits(node);
  return Number(node);
}

Bindings& Bindings::set(const Number& variable, std::int64_t value) {
  if (variable.is_static() || variable.node()->op != NumberOp::variable)
    throw InvalidArgument(fmt::format("{} is not a variable, so it cannot be given a value", to_string(variable)));
  const NumberVariable& declared = *variable.node()->variable;
  if (value < declared.lower || value > declared.upper)
    throw InvalidArgument(
        fmt::format("{} = {} must be from {} to {}", declared.name, value, declared.lower, declared.upper));
  if (value % declared.divisor != 0)
    throw InvalidArgument(fmt::format("{} = {} must be a multiple of {}", declared.name, value, declared.divisor));
  values_[variable.node()] = value;
  return *this;
}

std::int64_t Bindings::operator[](const NumberNode& variable) const {
  const auto found = values_.find(&variable);
  if (found == values_.end()) throw InvalidArgument(fmt::format("{} has no value", variable.variable->name));
  return found->second;
}

std::int64_t evaluate(const Number& number, const Bindings& bindings) { return Evaluator(bindings)(number); }

}  // namespace tilewright::layout
