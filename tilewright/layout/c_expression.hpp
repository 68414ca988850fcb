// C expressions over integers, with constant folding and minimal parentheses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tilewright::layout {

/// An immutable tree of constants, names and the C operators + - * / % << >> & ^ |. Operators fold
/// constants: 3 * 4, x + 0, x * 1, x * 0, x & 0, x % 1. Operands must not be negative.
class CExpression {
 public:
  enum class Op : std::uint8_t {
    constant,
    name,
    add,
    subtract,
    multiply,
    divide,
    modulo,
    left,
    right,
    bit_and,
    bit_xor,
    bit_or
  };

  CExpression(std::int64_t constant);  // NOLINT: a constant is an expression
  explicit CExpression(std::string name);

  bool is_constant() const { return node_->op == Op::constant; }
  bool is_constant(std::int64_t value) const { return is_constant() && node_->value == value; }

  /// "row << 7 | (chunk ^ row & 7) << 4"; masks from 16 on are hexadecimal.
  std::string text() const;

  friend CExpression operator+(const CExpression& a, const CExpression& b);
  friend CExpression operator-(const CExpression& a, const CExpression& b);
  friend CExpression operator*(const CExpression& a, const CExpression& b);
  friend CExpression operator/(const CExpression& a, const CExpression& b);
  friend CExpression operator%(const CExpression& a, const CExpression& b);
  friend CExpression operator<<(const CExpression& a, const CExpression& b);
  friend CExpression operator>>(const CExpression& a, const CExpression& b);
  friend CExpression operator&(const CExpression& a, const CExpression& b);
  friend CExpression operator^(const CExpression& a, const CExpression& b);
  friend CExpression operator|(const CExpression& a, const CExpression& b);

 private:
  struct Node {
    Op op = Op::constant;
    std::int64_t value = 0;
    std::string name;
    std::shared_ptr<const Node> a, b;
  };

  CExpression(Op op, const CExpression& a, const CExpression& b);
  static void print(const Node& node, std::string& out);
  static void print_operand(const Node& parent, const Node& operand, bool is_right, std::string& out);

  std::shared_ptr<const Node> node_;
};

}  // namespace tilewright::layout
