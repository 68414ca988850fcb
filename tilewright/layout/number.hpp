// Numbers: the integers of layouts, known now or at run time. A Number is a static integer or an expression over
// variables; the same layout algebra computes with both.
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace tilewright::layout {

/// Types that convert to a leaf: integers that fit in std::int64_t, except bool.
template <class T>
concept Integer =
    std::integral<T> && !std::same_as<T, bool> && (sizeof(T) < sizeof(std::int64_t) || std::is_signed_v<T>);

namespace detail {
[[noreturn]] void refuse_product(std::int64_t a, std::int64_t b);
[[noreturn]] void refuse_sum(std::int64_t a, std::int64_t b);
}  // namespace detail

/// a * b. @throws InvalidArgument if its magnitude does not fit in 63 bits; so every result can be negated.
inline std::int64_t checked_product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || result == std::numeric_limits<std::int64_t>::min())
    detail::refuse_product(a, b);
  return result;
}

/// a + b. @throws as checked_product does.
inline std::int64_t checked_sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result) || result == std::numeric_limits<std::int64_t>::min())
    detail::refuse_sum(a, b);
  return result;
}

/// The operation of a node of an expression.
enum class NumberOp : std::uint8_t {
  variable,
  add,
  subtract,
  multiply,
  divide,       // rounded down
  ceil_divide,  // rounded up
  modulo,
  minimum,
  maximum,
  select,  // a if the condition c is not 0, else b
  left,
  right,
  bit_and,
  bit_xor,
  bit_or,
  less,   // 1 if a < b, else 0
  equal,  // 1 if a == b, else 0
};

/// When the value of a Number is known. The kind of an expression is the latest kind of its variables.
enum class NumberKind : std::uint8_t {
  fixed,   // now
  launch,  // on the host, for each call: extents, leading dimensions
  kernel,  // in the kernel: threadIdx.x, blockIdx.x
  loop,    // in one iteration of a loop of the kernel
};

struct NumberNode;
class NumberScope;

/// A static integer or an expression over the variables of a NumberScope. Equality is structural: expressions are
/// normalised (sums of products in a fixed order) and interned, so that equal ones have the same node. Expressions know
/// a divisor and a range. Only static integers and sums may be negative; the operands of every other operation must be
/// at least 0 for all values of the variables.
///
/// A Number refers to its scope, which must outlive it. Making expressions is not thread-safe per scope; reading is.
class Number {
 public:
  constexpr Number() = default;                              // 0
  constexpr Number(Integer auto value) : value_(value) {}    // NOLINT: an integer is a Number
  explicit Number(const NumberNode& node) : node_(&node) {}  // the value of a node

  bool is_static() const { return node_ == nullptr; }
  /// Whether it is the static integer `value`.
  bool is_static(std::int64_t value) const { return node_ == nullptr && value_ == value; }
  /// The static integer. @throws InvalidArgument for an expression
  std::int64_t value() const {
    if (node_ != nullptr) refuse_value();
    return value_;
  }
  /// The node of an expression; null for a static integer.
  const NumberNode* node() const { return node_; }
  NumberKind kind() const;

  /// Every value is a multiple of it. The magnitude of a static integer, so 0 for 0.
  std::int64_t divisor() const;
  /// The smallest and the largest value that it may have. They saturate at 63 bits.
  std::int64_t lower() const { return node_ == nullptr ? value_ : lower_of_node(); }
  std::int64_t upper() const { return node_ == nullptr ? value_ : upper_of_node(); }
  /// The bits that may be 1 in a value; all bits if it may be negative.
  std::uint64_t bits() const;

  bool operator==(const Number&) const = default;

  /// The operators fold what is known, and throw InvalidArgument for results that do not fit in 63 bits, for a divisor
  /// that may be 0, and for operands that may be negative (except of + - *). Static integers are divided as in C.
  friend Number operator+(const Number& a, const Number& b) {
    return are_static(a, b) ? Number(checked_sum(a.value_, b.value_)) : sum(a, b);
  }
  friend Number operator-(const Number& a, const Number& b) {
    return are_static(a, b) && b.value_ != kLeast ? Number(checked_sum(a.value_, -b.value_)) : difference(a, b);
  }
  friend Number operator*(const Number& a, const Number& b) {
    return are_static(a, b) ? Number(checked_product(a.value_, b.value_)) : product(a, b);
  }
  friend Number operator/(const Number& a, const Number& b) {
    return are_static(a, b) && b.value_ > 0 ? Number(a.value_ / b.value_) : quotient(a, b);
  }
  friend Number operator%(const Number& a, const Number& b) {
    return are_static(a, b) && b.value_ > 0 ? Number(a.value_ % b.value_) : remainder(a, b);
  }
  friend Number operator<<(const Number& a, const Number& b);
  friend Number operator>>(const Number& a, const Number& b);
  friend Number operator&(const Number& a, const Number& b);
  friend Number operator^(const Number& a, const Number& b);
  friend Number operator|(const Number& a, const Number& b);
  Number& operator+=(const Number& b) { return *this = *this + b; }
  Number& operator*=(const Number& b) { return *this = *this * b; }

 private:
  static constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  static bool are_static(const Number& a, const Number& b) { return a.node_ == nullptr && b.node_ == nullptr; }
  static Number sum(const Number& a, const Number& b);
  static Number difference(const Number& a, const Number& b);
  static Number product(const Number& a, const Number& b);
  static Number quotient(const Number& a, const Number& b);
  static Number remainder(const Number& a, const Number& b);
  [[noreturn]] void refuse_value() const;
  std::int64_t lower_of_node() const;
  std::int64_t upper_of_node() const;

  std::int64_t value_ = 0;
  const NumberNode* node_ = nullptr;
};

namespace detail {
Number ceil_div(const Number& a, const Number& b);
Number magnitude(const Number& a);
Number less(const Number& a, const Number& b);
Number equal(const Number& a, const Number& b);
}  // namespace detail

/// ceil(a / b) for a >= 0, b > 0.
inline Number ceil_div(const Number& a, const Number& b) {
  if (!a.is_static() || !b.is_static() || b.value() <= 0) return detail::ceil_div(a, b);
  return a.value() / b.value() + (a.value() % b.value() > 0 ? 1 : 0);
}
Number minimum(const Number& a, const Number& b);
Number maximum(const Number& a, const Number& b);
/// |a| of a static integer; an expression that is not negative itself.
inline Number magnitude(const Number& a) { return a.is_static() && a.value() >= 0 ? a : detail::magnitude(a); }

// Conditions are Numbers: those below are 1 if they hold and 0 if not. Functions that take conditions take any Number,
// which holds if it is not 0.

inline Number less(const Number& a, const Number& b) {
  return a.is_static() && b.is_static() ? Number(a.value() < b.value() ? 1 : 0) : detail::less(a, b);
}
inline Number less_equal(const Number& a, const Number& b) {
  return a.is_static() && b.is_static() ? Number(a.value() <= b.value() ? 1 : 0) : detail::less(a, b + 1);
}
inline Number equal(const Number& a, const Number& b) {
  return a.is_static() && b.is_static() ? Number(a == b ? 1 : 0) : detail::equal(a, b);
}
/// Whether b is a multiple of a.
inline Number divides(const Number& a, const Number& b) { return equal(b % a, 0); }
/// 1 for a number that is not 0, and 0 for 0.
Number truth(const Number& number);
/// Whether both conditions hold.
Number both(const Number& a, const Number& b);
/// Whether the condition does not hold.
Number negation(const Number& condition);
/// a if the condition holds, else b.
Number select(const Number& condition, const Number& a, const Number& b);

enum class Decision : std::uint8_t { no, yes, unknown };
/// Whether a condition holds for all values of its variables (yes), for none (no), or is not decided.
inline Decision decide(const Number& condition) {
  if (condition.lower() > 0 || condition.upper() < 0) return Decision::yes;
  return condition.lower() == 0 && condition.upper() == 0 ? Decision::no : Decision::unknown;
}
inline bool holds(const Number& condition) { return decide(condition) == Decision::yes; }

/// A variable of a scope. A launch value is given by the caller of a kernel and has a static range. A kernel or loop
/// value is from 0, or `lower` of a loop, to count - 1.
struct NumberVariable {
  std::string name;
  NumberKind kind = NumberKind::launch;
  std::int64_t divisor = 1;
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::optional<Number> count;  // of kernel and loop values
};

/// A node of an expression: an operation on up to three Numbers, or a variable. Operands are created before the node,
/// so their ids are smaller.
struct NumberNode {
  NumberOp op = NumberOp::variable;
  NumberKind kind = NumberKind::fixed;
  std::uint32_t id = 0;  // unique in the scope
  Number a, b, c;
  std::int64_t divisor = 1;
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::uint64_t bits = 0;
  const NumberVariable* variable = nullptr;
  NumberScope* scope = nullptr;
};

/// Owns the variables and the nodes of expressions: one per kernel or set of layouts, held by a shared_ptr by whoever
/// writes the kernel. Numbers of two scopes cannot be combined.
class NumberScope {
 public:
  static constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();

  NumberScope() = default;
  NumberScope(const NumberScope&) = delete;
  NumberScope& operator=(const NumberScope&) = delete;
  ~NumberScope() = default;

  /// A launch argument: a multiple of `divisor` from `lower` to `upper`. Values outside are refused when they are
  /// bound.
  /// @throws InvalidArgument for an empty range, a name that the scope has, a divisor below 1, and a negative bound
  Number launch(const std::string& name, std::int64_t divisor = 1, std::int64_t lower = 1,
                std::int64_t upper = kMaxIndex);
  /// A value of the kernel from 0 to count - 1 that is a multiple of `divisor`: threadIdx.x, blockIdx.x.
  Number kernel(const std::string& name, const Number& count, std::int64_t divisor = 1);
  /// The counter of a loop, from `lower` to count - 1.
  Number loop(const std::string& name, const Number& count, std::int64_t divisor = 1, std::int64_t lower = 0);

  /// The variables in the order in which they were made.
  const std::vector<Number>& variables() const { return variables_; }
  std::size_t node_count() const { return nodes_.size(); }

  /// The node op(a, b, c) as it is, without folding; for the operators.
  Number intern(NumberOp op, const Number& a, const Number& b, const Number& c = {});

 private:
  struct Key {
    NumberOp op;
    Number a, b, c;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  Number declare(NumberVariable variable);

  std::deque<NumberNode> nodes_;
  std::deque<NumberVariable> declared_;
  std::vector<Number> variables_;
  std::unordered_map<Key, const NumberNode*, KeyHash> interned_;
};

/// Values of variables.
class Bindings {
 public:
  /// @throws InvalidArgument if `variable` is not a variable, and for a value outside its range or no multiple of its
  /// divisor
  Bindings& set(const Number& variable, std::int64_t value);
  /// @throws InvalidArgument for a variable without a value
  std::int64_t operator[](const NumberNode& variable) const;

 private:
  std::unordered_map<const NumberNode*, std::int64_t> values_;
};

/// The value for values of the variables. @throws InvalidArgument for a variable without a value, a counter that is not
/// below its count, a division by 0, and results that do not fit in 63 bits
std::int64_t evaluate(const Number& number, const Bindings& bindings);

/// For people: "m * lda + i % 8", "m % 8 == 0". The text for a compiler is c_text in number_text.hpp.
std::string to_string(const Number& number);

}  // namespace tilewright::layout
