// An evaluator of C expressions over integers, independent of the printer that it tests.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::layout {

/// The types of C that the expressions have: int, unsigned, long long. Each is converted to those after it.
enum class CType : std::uint8_t { s32, u32, s64 };

/// Compiles "+ - * / % << >> & ^ | < == != ?:", static_cast<long long>(), parentheses, decimal and hexadecimal
/// constants and names, by C's precedence and with C's types, and runs for many values. Results that are undefined in C
/// throw: overflow of signed types, divisions by 0, shifts by too many bits.
class CEvaluator {
 public:
  CEvaluator(std::string_view text, std::vector<std::string> names, CType type_of_names = CType::s64)
      : text_(text), names_(std::move(names)), type_of_names_(type_of_names) {
    root_ = conditional();
    if (peek() != '\0') fail("end of text");
  }

  std::int64_t operator()(const std::vector<std::int64_t>& values) const { return run(*root_, values); }

 private:
  enum class Kind : std::uint8_t { constant, name, cast, binary, conditional };
  struct Node {
    Kind kind = Kind::constant;
    CType type = CType::s32;
    std::string op;
    std::int64_t value = 0;  // of a constant; the index of a name
    std::unique_ptr<Node> a, b, c;
  };
  using Tree = std::unique_ptr<Node>;

  std::int64_t run(const Node& node, const std::vector<std::int64_t>& values) const {
    switch (node.kind) {
      case Kind::constant:
        return node.value;
      case Kind::name:
        return converted(values.at(static_cast<std::size_t>(node.value)), node.type);
      case Kind::cast:
        return converted(run(*node.a, values), node.type);
      case Kind::conditional:
        return converted(run(*(run(*node.c, values) != 0 ? node.a : node.b), values), node.type);
      case Kind::binary:
        break;
    }
    const bool is_shift = node.op == "<<" || node.op == ">>";
    const CType common = is_shift ? node.a->type : std::max(node.a->type, node.b->type);
    const std::int64_t a = converted(run(*node.a, values), common);
    const std::int64_t b = is_shift ? run(*node.b, values) : converted(run(*node.b, values), common);
    return checked(apply(node.op, a, b, common == CType::s64 ? 64 : 32), node.type);
  }

  __int128 apply(const std::string& op, std::int64_t a, std::int64_t b, int width) const {
    if ((op == "/" || op == "%") && b == 0) fail("a divisor that is not 0");
    if ((op == "<<" || op == ">>") && (b < 0 || b >= width)) fail("a shift that C defines");
    if (op == "+") return __int128{a} + b;
    if (op == "-") return __int128{a} - b;
    if (op == "*") return __int128{a} * b;
    if (op == "/") return __int128{a} / b;
    if (op == "%") return __int128{a} % b;
    if (op == "<<") return __int128{a} * (__int128{1} << b);
    if (op == ">>") return a >> b;
    if (op == "&") return a & b;
    if (op == "^") return a ^ b;
    if (op == "|") return a | b;
    if (op == "<") return a < b ? 1 : 0;
    if (op == "==") return a == b ? 1 : 0;
    return a != b ? 1 : 0;
  }

  static std::int64_t converted(std::int64_t value, CType type) {
    if (type == CType::s64) return value;
    const auto low = static_cast<std::uint32_t>(value);
    return type == CType::u32 ? std::int64_t{low} : std::int64_t{static_cast<std::int32_t>(low)};
  }
  std::int64_t checked(__int128 value, CType type) const {
    if (type == CType::u32) return static_cast<std::uint32_t>(value);
    const bool is_wide = type == CType::s64;
    const __int128 least =
        is_wide ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int32_t>::min();
    const __int128 most = is_wide ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int32_t>::max();
    if (value < least || value > most) fail("a result without overflow");
    return static_cast<std::int64_t>(value);
  }

  static Tree binary_of(std::string op, Tree a, Tree b) {
    auto node = std::make_unique<Node>();
    node->kind = Kind::binary;
    const bool is_relation = op == "<" || op == "==" || op == "!=";
    const bool is_shift = op == "<<" || op == ">>";
    node->type = is_relation ? CType::s32 : is_shift ? a->type : std::max(a->type, b->type);
    node->op = std::move(op);
    node->a = std::move(a);
    node->b = std::move(b);
    return node;
  }

  Tree conditional() {
    Tree condition = binary(0);
    if (peek() != '?') return condition;
    take();
    auto node = std::make_unique<Node>();
    node->kind = Kind::conditional;
    node->c = std::move(condition);
    node->a = conditional();
    if (take() != ':') fail("':'");
    node->b = conditional();
    node->type = std::max(node->a->type, node->b->type);
    return node;
  }

  /// The operator of a level of C's grammar that comes next, or "".
  std::string operator_of(std::size_t level) {
    static const std::vector<std::vector<std::string>> kLevels = {{"|"}, {"^"},        {"&"},      {"==", "!="},
                                                                  {"<"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
    peek();
    std::string found;
    if (level >= kLevels.size()) return found;
    for (const std::string& op : kLevels[level]) {
      const bool is_longer = op == "<" && text_.compare(position_, 2, "<<") == 0;
      if (!is_longer && text_.compare(position_, op.size(), op) == 0) found = op;
    }
    return found;
  }
  static constexpr std::size_t kLevelCount = 8;

  Tree binary(std::size_t level) {
    if (level == kLevelCount) return unary();
    Tree left = binary(level + 1);
    for (std::string op = operator_of(level); !op.empty(); op = operator_of(level)) {
      position_ += op.size();
      left = binary_of(op, std::move(left), binary(level + 1));
    }
    return left;
  }

  Tree unary() {
    if (peek() == '-') {
      take();
      return binary_of("-", constant(0, CType::s32), unary());
    }
    if (peek() == '(') {
      take();
      Tree inner = conditional();
      if (take() != ')') fail("')'");
      return inner;
    }
    constexpr std::string_view kCast = "static_cast<long long>(";
    if (text_.compare(position_, kCast.size(), kCast) == 0) {
      position_ += kCast.size();
      auto node = std::make_unique<Node>();
      node->kind = Kind::cast;
      node->type = CType::s64;
      node->a = conditional();
      if (take() != ')') fail("')'");
      return node;
    }
    return operand();
  }

  static Tree constant(std::int64_t value, CType type) {
    auto node = std::make_unique<Node>();
    node->type = type;
    node->value = value;
    return node;
  }

  Tree operand() {
    peek();
    const std::size_t begin = position_;
    while (position_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[position_])) != 0 ||
                                        text_[position_] == '_' || text_[position_] == '.'))
      ++position_;
    const std::string word = text_.substr(begin, position_ - begin);
    if (word.empty()) fail("an operand");
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) {
      const std::int64_t value = std::stoll(word, nullptr, 0);
      const bool is_hexadecimal = word.starts_with("0x");
      const bool fits = value <= std::numeric_limits<std::int32_t>::max();
      if (word.ends_with("LL") || (!fits && !(is_hexadecimal && value <= std::numeric_limits<std::uint32_t>::max())))
        return constant(value, CType::s64);
      return constant(value, fits ? CType::s32 : CType::u32);
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] != word) continue;
      Tree node = constant(static_cast<std::int64_t>(i), type_of_names_);
      node->kind = Kind::name;
      return node;
    }
    fail("a known name");
  }

  char peek() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  char take() {
    peek();
    return text_.at(position_++);
  }
  [[noreturn]] void fail(const std::string& wanted) const {
    throw std::runtime_error("expected " + wanted + " at " + std::to_string(position_) + " of " + text_);
  }

  std::string text_;
  std::vector<std::string> names_;
  CType type_of_names_;
  std::size_t position_ = 0;
  Tree root_;
};

}  // namespace tilewright::layout
