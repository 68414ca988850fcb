#include "tilewright/layout/c_expression.hpp"

#include <fmt/format.h>

#include <utility>

#include "tilewright/base/error.hpp"

namespace tilewright::layout {
namespace {

using Op = CExpression::Op;

/// The precedence of C operators; a greater one binds tighter.
int precedence(Op op) {
  switch (op) {
    case Op::constant:
    case Op::name:
      return 6;
    case Op::multiply:
    case Op::divide:
    case Op::modulo:
      return 5;
    case Op::add:
    case Op::subtract:
      return 4;
    case Op::left:
    case Op::right:
      return 3;
    case Op::bit_and:
      return 2;
    case Op::bit_xor:
      return 1;
    case Op::bit_or:
      return 0;
  }
  return 0;
}

std::string_view symbol(Op op) {
  switch (op) {
    case Op::add:
      return " + ";
    case Op::subtract:
      return " - ";
    case Op::multiply:
      return " * ";
    case Op::divide:
      return " / ";
    case Op::modulo:
      return " % ";
    case Op::left:
      return " << ";
    case Op::right:
      return " >> ";
    case Op::bit_and:
      return " & ";
    case Op::bit_xor:
      return " ^ ";
    case Op::bit_or:
      return " | ";
    case Op::constant:
    case Op::name:
      break;
  }
  return "";
}

/// Whether a parent (b right c) == (a parent b) right c.
bool associates(Op parent, Op right) {
  if (parent == Op::add) return right == Op::add || right == Op::subtract;
  return parent == right &&
         (parent == Op::multiply || parent == Op::bit_and || parent == Op::bit_xor || parent == Op::bit_or);
}

}  // namespace

CExpression::CExpression(std::int64_t constant)
    : node_(std::make_shared<Node>(Node{Op::constant, constant, {}, {}, {}})) {}

CExpression::CExpression(std::string name)
    : node_(std::make_shared<Node>(Node{Op::name, 0, std::move(name), {}, {}})) {}

CExpression::CExpression(Op op, const CExpression& a, const CExpression& b)
    : node_(std::make_shared<Node>(Node{op, 0, {}, a.node_, b.node_})) {}

void CExpression::print_operand(const Node& parent, const Node& operand, bool is_right, std::string& out) {
  const int outer = precedence(parent.op);
  const int inner = precedence(operand.op);
  const bool parenthesised = inner < outer || (is_right && inner == outer && !associates(parent.op, operand.op));
  if (parenthesised) out += '(';
  if (parent.op == Op::bit_and && operand.op == Op::constant && operand.value >= 16) {
    out += fmt::format("{:#x}", operand.value);
  } else {
    print(operand, out);
  }
  if (parenthesised) out += ')';
}

void CExpression::print(const Node& node, std::string& out) {
  if (node.op == Op::constant) {
    out += std::to_string(node.value);
  } else if (node.op == Op::name) {
    out += node.name;
  } else {
    print_operand(node, *node.a, false, out);
    out += symbol(node.op);
    print_operand(node, *node.b, true, out);
  }
}

std::string CExpression::text() const {
  std::string out;
  print(*node_, out);
  return out;
}

CExpression operator+(const CExpression& a, const CExpression& b) {
  if (a.is_constant(0)) return b;
  if (b.is_constant(0)) return a;
  if (a.is_constant() && b.is_constant()) return a.node_->value + b.node_->value;
  if (b.is_constant() && b.node_->value < 0) return a - CExpression(-b.node_->value);
  return {Op::add, a, b};
}

CExpression operator-(const CExpression& a, const CExpression& b) {
  if (b.is_constant(0)) return a;
  if (a.is_constant() && b.is_constant()) return a.node_->value - b.node_->value;
  return {Op::subtract, a, b};
}

CExpression operator*(const CExpression& a, const CExpression& b) {
  if (a.is_constant(0) || b.is_constant(1)) return a;
  if (b.is_constant(0) || a.is_constant(1)) return b;
  if (a.is_constant() && b.is_constant()) return a.node_->value * b.node_->value;
  return {Op::multiply, a, b};
}

CExpression operator/(const CExpression& a, const CExpression& b) {
  TILEWRIGHT_CHECK(!b.is_constant(0), "{} is divided by 0", a.text());
  if (a.is_constant(0) || b.is_constant(1)) return a;
  if (a.is_constant() && b.is_constant()) return a.node_->value / b.node_->value;
  return {Op::divide, a, b};
}

CExpression operator%(const CExpression& a, const CExpression& b) {
  TILEWRIGHT_CHECK(!b.is_constant(0), "{} is divided by 0", a.text());
  if (a.is_constant(0)) return a;
  if (b.is_constant(1)) return 0;
  if (a.is_constant() && b.is_constant()) return a.node_->value % b.node_->value;
  return {Op::modulo, a, b};
}

CExpression operator<<(const CExpression& a, const CExpression& b) {
  if (a.is_constant(0) || b.is_constant(0)) return a;
  if (a.is_constant() && b.is_constant()) return a.node_->value << b.node_->value;
  return {Op::left, a, b};
}

CExpression operator>>(const CExpression& a, const CExpression& b) {
  if (a.is_constant(0) || b.is_constant(0)) return a;
  if (a.is_constant() && b.is_constant()) return a.node_->value >> b.node_->value;
  return {Op::right, a, b};
}

CExpression operator&(const CExpression& a, const CExpression& b) {
  if (a.is_constant(0)) return a;
  if (b.is_constant(0)) return b;
  if (a.is_constant() && b.is_constant()) return a.node_->value & b.node_->value;
  return {Op::bit_and, a, b};
}

CExpression operator^(const CExpression& a, const CExpression& b) {
  if (a.is_constant(0)) return b;
  if (b.is_constant(0)) return a;
  if (a.is_constant() && b.is_constant()) return a.node_->value ^ b.node_->value;
  return {Op::bit_xor, a, b};
}

CExpression operator|(const CExpression& a, const CExpression& b) {
  if (a.is_constant(0)) return b;
  if (b.is_constant(0)) return a;
  if (a.is_constant() && b.is_constant()) return a.node_->value | b.node_->value;
  return {Op::bit_or, a, b};
}

}  // namespace tilewright::layout
