// An evaluator of C expressions over integers, independent of the printer that it tests.
#pragma once

#include <cctype>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::layout {

/// Compiles "+ - * / % << >> & ^ |", parentheses, decimal and hexadecimal constants and names, by C's precedence, to a
/// stack program that runs for many values.
class CEvaluator {
 public:
  CEvaluator(std::string_view text, std::vector<std::string> names) : text_(text), names_(std::move(names)) {
    binary(0);
    if (position_ != text_.size()) fail("end of text");
  }

  std::int64_t operator()(const std::vector<std::int64_t>& values) const {
    std::vector<std::int64_t> stack;
    for (const Step& step : program_) {
      if (step.op == kConstant) {
        stack.push_back(step.value);
      } else if (step.op == kName) {
        stack.push_back(values.at(static_cast<std::size_t>(step.value)));
      } else {
        const std::int64_t right = stack.back();
        stack.pop_back();
        stack.back() = apply(step.op, stack.back(), right);
      }
    }
    return stack.back();
  }

 private:
  static constexpr char kConstant = 'c', kName = 'n';
  struct Step {
    char op;
    std::int64_t value = 0;
  };

  static std::int64_t apply(char op, std::int64_t a, std::int64_t b) {
    switch (op) {
      case '+':
        return a + b;
      case '-':
        return a - b;
      case '*':
        return a * b;
      case '/':
        return a / b;
      case '%':
        return a % b;
      case '<':
        return a << b;
      case '>':
        return a >> b;
      case '&':
        return a & b;
      case '^':
        return a ^ b;
      default:
        return a | b;
    }
  }

  /// Levels of C's grammar from | (loosest) to multiplication.
  static constexpr std::string_view kLevels[] = {"|", "^", "&", "<>", "+-", "*/%"};

  void binary(std::size_t level) {
    if (level == std::size(kLevels)) return unary();
    binary(level + 1);
    while (kLevels[level].find(peek()) != std::string_view::npos && peek() != '\0') {
      const char op = take();
      if ((op == '<' || op == '>') && take() != op) fail("a shift");
      binary(level + 1);
      program_.push_back({op});
    }
  }

  void unary() {
    if (peek() == '-') {
      take();
      program_.push_back({kConstant, 0});
      unary();
      program_.push_back({'-'});
    } else if (peek() == '(') {
      take();
      binary(0);
      if (peek() != ')') fail("')'");
      take();
    } else {
      operand();
    }
  }

  void operand() {
    peek();
    const std::size_t begin = position_;
    while (position_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[position_])) != 0 ||
                                        text_[position_] == '_' || text_[position_] == '.'))
      ++position_;
    const std::string word = text_.substr(begin, position_ - begin);
    if (word.empty()) fail("an operand");
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) {
      program_.push_back({kConstant, std::stoll(word, nullptr, 0)});
      return;
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == word) return program_.push_back({kName, static_cast<std::int64_t>(i)});
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
  std::vector<Step> program_;
  std::size_t position_ = 0;
};

}  // namespace tilewright::layout
