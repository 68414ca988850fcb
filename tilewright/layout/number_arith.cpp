// Numbers as operations of MLIR's arith dialect.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/power_of_two.hpp"
#include "tilewright/layout/number_text.hpp"

namespace tilewright::layout {
namespace {

constexpr const char* kNoWrap = " overflow<nsw, nuw>";

bool is_power_of_two(const Number& n) { return n.is_static() && tilewright::is_power_of_two(n.value()); }

/// The width in which an operation is computed.
int width_of(const NumberNode& node) { return std::max({width_of(Number(node)), width_of(node.a), width_of(node.b)}); }

}  // namespace

ArithPrinter::ArithPrinter(std::function<std::string(const Number&)> name_of,
                           std::function<void(const std::string&)> emit, std::string prefix)
    : name_of_(std::move(name_of)), emit_(std::move(emit)), prefix_(std::move(prefix)), regions_(1) {}

void ArithPrinter::leave_region() {
  TILEWRIGHT_CHECK(regions_.size() > 1, "leave_region without enter_region");
  regions_.pop_back();
}

const std::string* ArithPrinter::find(const std::string& key) const {
  for (const Region& region : regions_) {
    if (const auto found = region.find(key); found != region.end()) return &found->second;
  }
  return nullptr;
}

/// The name of the value of an operation, which is emitted unless the key is known. The key of most operations is their
/// text, so that equal ones are emitted once.
std::string ArithPrinter::define(const std::string& key, const std::string& operation) {
  if (const std::string* known = find(key)) return *known;
  std::string name = fmt::format("{}{}", prefix_, count_++);
  emit_(fmt::format("{} = {}", name, operation));
  regions_.back().emplace(key, name);
  return name;
}

std::string ArithPrinter::constant(std::int64_t value, int width) {
  const std::string text = fmt::format("arith.constant {} : i{}", value, width);
  return define(text, text);
}

std::string ArithPrinter::resized(const std::string& name, int from, int to) {
  if (from == to) return name;
  const std::string text = fmt::format("arith.{} {} : i{} to i{}", from < to ? "extui" : "trunci", name, from, to);
  return define(text, text);
}

std::string ArithPrinter::value(const Number& number, int width) {
  const int own = layout::width_of(number);
  if (own > width)
    throw InvalidArgument(fmt::format("{} is from {} to {}, which does not fit in i{}", to_string(number),
                                      number.lower(), number.upper(), width));
  return number.is_static() ? constant(number.value(), width) : resized(value(number), own, width);
}

std::string ArithPrinter::value(const Number& number) {
  if (number.is_static()) return constant(number.value(), layout::width_of(number));
  const NumberNode& node = *number.node();
  if (node.op == NumberOp::variable) return name_of_(number);
  const std::string key = fmt::format("node {}", node.id);
  if (const std::string* known = find(key)) return *known;
  std::string name = operation(node);
  regions_.back().emplace(key, name);
  return name;
}

std::pair<std::string, std::string> ArithPrinter::operands(const NumberNode& node, int width) {
  std::string a = value(node.a, width);
  return {std::move(a), value(node.b, width)};
}

std::string ArithPrinter::condition(const Number& number) {
  if (!number.is_static()) {
    const NumberNode& node = *number.node();
    const bool is_signed = node.a.lower() < 0 || node.b.lower() < 0;
    if (node.op == NumberOp::less) return comparison(node, is_signed ? "slt" : "ult");
    if (node.op == NumberOp::equal) return comparison(node, "eq");
  }
  const int width = layout::width_of(number);
  const std::string name = value(number);
  const std::string text = fmt::format("arith.cmpi ne, {}, {} : i{}", name, constant(0, width), width);
  return define(text, text);
}

std::string ArithPrinter::comparison(const NumberNode& node, const char* predicate) {
  const int width = std::max(layout::width_of(node.a), layout::width_of(node.b));
  const auto [a, b] = operands(node, width);
  const std::string text = fmt::format("arith.cmpi {}, {}, {} : i{}", predicate, a, b, width);
  return define(text, text);
}

/// An operation on both operands in the width of the node, whose result is cut to its own width.
std::string ArithPrinter::binary(const NumberNode& node, const char* name, const char* flags) {
  const int width = width_of(node);
  const auto [a, b] = operands(node, width);
  const std::string text = fmt::format("arith.{} {}, {}{} : i{}", name, a, b, flags, width);
  return resized(define(text, text), width, layout::width_of(Number(node)));
}

/// binary with another second operand.
std::string ArithPrinter::with_constant(const NumberNode& node, const char* name, std::int64_t second,
                                        const char* flags) {
  const int width = width_of(node);
  const std::string a = value(node.a, width);
  const std::string text = fmt::format("arith.{} {}, {}{} : i{}", name, a, constant(second, width), flags, width);
  return resized(define(text, text), width, layout::width_of(Number(node)));
}

std::string ArithPrinter::quotient(const NumberNode& node) {
  const bool is_exact = node.b.is_static() && node.a.divisor() % node.b.value() == 0;
  const char* flags = is_exact ? " exact" : "";
  if (!is_power_of_two(node.b)) return binary(node, "divui", flags);
  return with_constant(node, "shrui", std::countr_zero(node.b.bits()), flags);
}

std::string ArithPrinter::operation(const NumberNode& node) {
  const bool is_nonnegative = node.lower >= 0 && node.a.lower() >= 0 && node.b.lower() >= 0;
  const bool fits = node.upper < std::numeric_limits<std::int64_t>::max();  // ranges saturate
  const char* no_wrap = is_nonnegative && fits ? kNoWrap : "";
  const int own = layout::width_of(Number(node));
  switch (node.op) {
    case NumberOp::add:
      return binary(node, "addi", no_wrap);
    case NumberOp::subtract:
      return binary(node, "subi", no_wrap);
    case NumberOp::multiply:
      return binary(node, "muli", no_wrap);
    case NumberOp::divide:
      return quotient(node);
    case NumberOp::ceil_divide: {
      const Number floor = (node.a + (node.b - 1)) / node.b;
      return resized(value(floor), layout::width_of(floor), own);
    }
    case NumberOp::modulo:
      return is_power_of_two(node.b) ? with_constant(node, "andi", node.b.value() - 1) : binary(node, "remui");
    case NumberOp::minimum:
      return binary(node, is_nonnegative ? "minui" : "minsi");
    case NumberOp::maximum:
      return binary(node, is_nonnegative ? "maxui" : "maxsi");
    case NumberOp::select: {
      const std::string is_first = condition(node.c);
      const auto [a, b] = operands(node, own);
      const std::string text = fmt::format("arith.select {}, {}, {} : i{}", is_first, a, b, own);
      return define(text, text);
    }
    case NumberOp::left:
      return binary(node, "shli");
    case NumberOp::right:
      return binary(node, "shrui");
    case NumberOp::bit_and:
      return binary(node, "andi");
    case NumberOp::bit_xor:
      return binary(node, "xori");
    case NumberOp::bit_or:
      return binary(node, "ori");
    case NumberOp::less:
    case NumberOp::equal:
      return resized(condition(Number(node)), 1, own);
    case NumberOp::variable:
      break;
  }
  return "";
}

}  // namespace tilewright::layout
