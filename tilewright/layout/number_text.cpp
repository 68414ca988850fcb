// C expressions of Numbers.
#include "tilewright/layout/number_text.hpp"

#include <fmt/format.h>

#include <bit>

#include "tilewright/base/power_of_two.hpp"
#include "tilewright/layout/c_expression.hpp"

namespace tilewright::layout {
namespace {

constexpr std::int64_t kMaxIndex = NumberScope::kMaxIndex;

bool is_power_of_two(const Number& n) { return n.is_static() && tilewright::is_power_of_two(n.value()); }

/// Writes C for compilers, or text for people: without conversions, with / and % in place of shifts and masks, and with
/// min, max, ceil_div and relations.
class CText {
 public:
  enum class Reader : std::uint8_t { compiler, people };
  CText(const NumberNames& names, Reader reader) : names_(names), reader_(reader) {}

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
  /// Whether the C text of a number has 32 bits: variables and results from 0 to 2^31 - 1 are `unsigned` or `int`, and
  /// so are constants, also negative ones.
  static bool is_narrow(const Number& number) {
    return width_of(number) == 32 || (number.is_static() && number.value() < 0 && number.value() >= -kMaxIndex);
  }

  /// The first operand of a sum, a product or a shift, converted to `long long` if the result needs 64 bits and no
  /// operand has them. A sum of `unsigned` that may be negative needs them, too.
  CExpression first_operand(const NumberNode& node) {
    const bool widens = !is_for_people() && width_of(Number(node)) == 64 && is_narrow(node.a) && is_narrow(node.b);
    const CExpression a = (*this)(node.a);
    return widens && !a.is_constant() ? CExpression(fmt::format("static_cast<long long>({})", a.text()))
           : widens                   ? CExpression(a.text() + "LL")
                                      : a;
  }

  /// The text of a number beside others whose type is not known. C would convert a negative `int` to `unsigned` there.
  std::string signed_text(const Number& number) {
    const std::string text = (*this)(number).text();
    return number.is_static() && number.value() < 0 && !is_for_people() ? text + "LL" : text;
  }

  /// An operand of a relation. In C, relations bind tighter than & ^ |.
  std::string operand(const Number& number) {
    std::string text = signed_text(number);
    return text.find_first_of("&^|") == std::string::npos ? text : '(' + text + ')';
  }

  std::string relation(const NumberNode& node, const char* sign) {
    const std::string a = operand(node.a);
    return fmt::format("{} {} {}", a, sign, operand(node.b));
  }

  CExpression truth(const NumberNode& node, const char* sign) {
    return CExpression(fmt::format(fmt::runtime(is_for_people() ? "({})" : "({} ? 1 : 0)"), relation(node, sign)));
  }

  CExpression choice(const std::string& condition, const Number& yes, const Number& no) {
    const std::string first = signed_text(yes);
    return CExpression(fmt::format("({} ? {} : {})", condition, first, signed_text(no)));
  }

  CExpression call(const char* function, const NumberNode& node) {
    const std::string first = (*this)(node.a).text();
    return CExpression(fmt::format("{}({}, {})", function, first, (*this)(node.b).text()));
  }

  std::string condition(const Number& number) {
    if (!number.is_static() && number.node()->op == NumberOp::less) return relation(*number.node(), "<");
    if (!number.is_static() && number.node()->op == NumberOp::equal) return relation(*number.node(), "==");
    return operand(number) + " != 0";
  }

  CExpression divided(const CExpression& a, const Number& b) {
    if (is_power_of_two(b) && !is_for_people()) return a >> std::countr_zero(static_cast<std::uint64_t>(b.value()));
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
        if (is_for_people()) return call("ceil_div", node);
        return divided((*this)(node.a + (node.b - 1)), node.b);
      case NumberOp::modulo:
        return is_power_of_two(node.b) && !is_for_people() ? a() & (node.b.value() - 1) : a() % b();
      case NumberOp::minimum:
        return is_for_people() ? call("min", node) : choice(relation(node, "<"), node.a, node.b);
      case NumberOp::maximum:
        return is_for_people() ? call("max", node) : choice(relation(node, "<"), node.b, node.a);
      case NumberOp::select:
        return choice(condition(node.c), node.a, node.b);
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
        return truth(node, "<");
      case NumberOp::equal:
        return truth(node, "==");
    }
    return 0;
  }

  bool is_for_people() const { return reader_ == Reader::people; }

  const NumberNames& names_;
  Reader reader_;
  std::unordered_map<const NumberNode*, CExpression> known_;
};

const NumberNames kOwnNames = [](const Number&) { return std::string(); };

}  // namespace

int width_of(const Number& number) { return number.lower() >= 0 && number.upper() <= NumberScope::kMaxIndex ? 32 : 64; }

std::string c_text(const Number& number, const NumberNames& names) {
  return CText(names, CText::Reader::compiler)(number).text();
}
std::string c_text(const Number& number) { return c_text(number, kOwnNames); }

std::string to_string(const Number& number) {
  std::string text = CText(kOwnNames, CText::Reader::people)(number).text();
  const bool is_relation =
      !number.is_static() && (number.node()->op == NumberOp::less || number.node()->op == NumberOp::equal);
  return is_relation ? text.substr(1, text.size() - 2) : text;
}

}  // namespace tilewright::layout
