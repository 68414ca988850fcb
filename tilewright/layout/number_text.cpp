// C expressions of Numbers.
#include "tilewright/layout/number_text.hpp"

#include <fmt/format.h>

#include <bit>

#include "tilewright/layout/c_expression.hpp"

namespace tilewright::layout {
namespace {

bool is_power_of_two(const Number& n) {
  return n.is_static() && n.value() > 0 && std::has_single_bit(static_cast<std::uint64_t>(n.value()));
}

class CText {
 public:
  CText(const NumberNames& names, bool widens) : names_(names), widens_(widens) {}

  CExpression operator()(const Number& number) {
    if (number.is_static()) return number.value();
    const NumberNode& node = *number.node();
    const auto known = known_.find(&node);
    if (known != known_.end()) return known->second;
    const std::string name = names_(number);
    CExpression code = name.empty() ? code_of(node) : CExpression(name);
    known_.emplace(&node, code);
    return code;
  }

 private:
  /// The first operand, converted to 64 bits if the result needs them and no operand has them.
  CExpression first_operand(const NumberNode& node) {
    const bool widens = widens_ && width_of(Number(node)) == 64 && width_of(node.a) == 32 && width_of(node.b) == 32;
    const CExpression a = (*this)(node.a);
    return widens && !a.is_constant() ? CExpression(fmt::format("static_cast<long long>({})", a.text()))
           : widens                   ? CExpression(a.text() + "LL")
                                      : a;
  }

  CExpression conditional(const CExpression& a, const char* relation, const CExpression& b, const CExpression& yes,
                          const CExpression& no) {
    return CExpression(fmt::format("({} {} {} ? {} : {})", compared(a), relation, compared(b), yes.text(), no.text()));
  }
  /// An operand of a comparison, which binds tighter than & ^ |.
  static std::string compared(const CExpression& operand) {
    const std::string text = operand.text();
    return text.find_first_of("&^|") == std::string::npos ? text : "(" + text + ")";
  }

  CExpression divided(const CExpression& a, const Number& b) {
    if (is_power_of_two(b)) return a >> std::countr_zero(static_cast<std::uint64_t>(b.value()));
    return a / (*this)(b);
  }

  CExpression code_of(const NumberNode& node) {
    const auto a = [&] { return (*this)(node.a); };
    const auto b = [&] { return (*this)(node.b); };
    switch (node.op) {
      case NumberOp::variable:
        return CExpression(node.variable->name);
      case NumberOp::add:
        return first_operand(node) + b();
      case NumberOp::subtract:
        return first_operand(node) - b();
      case NumberOp::multiply:
        return first_operand(node) * b();
      case NumberOp::divide:
        return divided(a(), node.b);
      case NumberOp::ceil_divide:
        return divided((*this)(node.a + (node.b - 1)), node.b);
      case NumberOp::modulo:
        return is_power_of_two(node.b) ? a() & (node.b.value() - 1) : a() % b();
      case NumberOp::minimum:
        return conditional(a(), "<", b(), a(), b());
      case NumberOp::maximum:
        return conditional(a(), "<", b(), b(), a());
      case NumberOp::select:
        return conditional((*this)(node.c), "!=", 0, a(), b());
      case NumberOp::left:
        return first_operand(node) << b();
      case NumberOp::right:
        return a() >> b();
      case NumberOp::bit_and:
        return a() & b();
      case NumberOp::bit_xor:
        return a() ^ b();
      case NumberOp::bit_or:
        return a() | b();
      case NumberOp::less:
        return conditional(a(), "<", b(), 1, 0);
      case NumberOp::equal:
        return conditional(a(), "==", b(), 1, 0);
    }
    return 0;
  }

  const NumberNames& names_;
  bool widens_;  // whether operands are converted to 64 bits where a result needs them
  std::unordered_map<const NumberNode*, CExpression> known_;
};

const NumberNames kOwnNames = [](const Number&) { return std::string(); };

}  // namespace

int width_of(const Number& number) { return number.lower() >= 0 && number.upper() <= NumberScope::kMaxIndex ? 32 : 64; }

std::string c_text(const Number& number, const NumberNames& names) { return CText(names, true)(number).text(); }
std::string c_text(const Number& number) { return c_text(number, kOwnNames); }

std::string to_string(const Number& number) { return CText(kOwnNames, false)(number).text(); }

}  // namespace tilewright::layout
