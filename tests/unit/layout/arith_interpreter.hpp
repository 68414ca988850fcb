// An interpreter of the arith operations that ArithPrinter emits, independent of the printer that it tests.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tilewright::layout {

/// Runs operations line by line. Values are kept in the width of their type; overflow, inexact `exact` operations and
/// names that are not defined throw.
class ArithInterpreter {
 public:
  void define(const std::string& name, std::uint64_t value, int width) { values_[name] = {cut(value, width), width}; }

  void run(const std::string& line) {
    std::string text = line;
    std::erase(text, ',');
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words.size() < 5 || words[1] != "=") fail(line);
    if (values_.contains(words[0])) fail("defined twice: " + line);
    std::string op = words[2];
    const bool is_conversion = words[words.size() - 2] == "to";
    const int width = std::stoi(words.back().substr(1));
    std::vector<std::string> operands;
    bool exact = false;
    bool no_wrap = false;
    for (std::size_t i = 3; i < words.size() && words[i] != ":"; ++i) {
      if (words[i] == "exact") {
        exact = true;
      } else if (words[i].starts_with("overflow")) {
        no_wrap = true;
      } else if (words[i] != "nuw>") {
        operands.push_back(words[i]);
      }
    }
    if (op == "arith.constant") {
      define(words[0], static_cast<std::uint64_t>(std::stoll(operands.at(0))), width);
      return;
    }
    if (is_conversion) {
      const int from = std::stoi(words[words.size() - 3].substr(1));
      const std::uint64_t value = get(operands.at(0), from, line);
      if (op == "arith.extui" ? from >= width : from <= width) fail(line);
      if (op == "arith.trunci" && cut(value, width) != value) fail("loses bits: " + line);
      define(words[0], value, width);
      return;
    }
    if (op == "arith.cmpi") {
      const std::uint64_t a = get(operands.at(1), width, line);
      const std::uint64_t b = get(operands.at(2), width, line);
      const std::string& predicate = operands.at(0);
      const bool result = predicate == "ult"   ? a < b
                          : predicate == "slt" ? signed_of(a, width) < signed_of(b, width)
                          : predicate == "eq"  ? a == b
                                               : a != b;
      define(words[0], result ? 1 : 0, 1);
      return;
    }
    if (op == "arith.select") {
      const bool first = get(operands.at(0), 1, line) != 0;
      define(words[0], get(operands.at(first ? 1 : 2), width, line), width);
      return;
    }
    const std::uint64_t a = get(operands.at(0), width, line);
    const std::uint64_t b = get(operands.at(1), width, line);
    define(words[0], binary(op, a, b, width, exact, no_wrap, line), width);
  }

  std::int64_t signed_value(const std::string& name) const {
    const Value& value = values_.at(name);
    return signed_of(value.bits, value.width);
  }

 private:
  struct Value {
    std::uint64_t bits = 0;
    int width = 0;
  };

  [[noreturn]] static void fail(const std::string& why) { throw std::runtime_error(why); }
  static std::uint64_t cut(std::uint64_t value, int width) {
    return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
  }
  static std::int64_t signed_of(std::uint64_t value, int width) {
    return width == 32 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(value))
                       : static_cast<std::int64_t>(value);
  }
  std::uint64_t get(const std::string& name, int width, const std::string& line) const {
    const auto found = values_.find(name);
    if (found == values_.end() || found->second.width != width)
      fail(name + " is not an i" + std::to_string(width) + ": " + line);
    return found->second.bits;
  }

  static std::uint64_t binary(const std::string& op, std::uint64_t a, std::uint64_t b, int width, bool exact,
                              bool no_wrap, const std::string& line) {
    const __int128 x = static_cast<__int128>(a);
    const __int128 y = static_cast<__int128>(b);
    __int128 result = 0;
    if (op == "arith.addi") {
      result = x + y;
    } else if (op == "arith.subi") {
      result = x - y;
    } else if (op == "arith.muli") {
      result = static_cast<__int128>(static_cast<unsigned __int128>(a) * b);
    } else if (op == "arith.divui" || op == "arith.remui") {
      if (b == 0) fail("division by 0: " + line);
      if (exact && a % b != 0) fail("not exact: " + line);
      return op == "arith.divui" ? a / b : a % b;
    } else if (op == "arith.shrui") {
      if (exact && (a & ((std::uint64_t{1} << b) - 1)) != 0) fail("not exact: " + line);
      return a >> b;
    } else if (op == "arith.shli") {
      return cut(a << b, width);
    } else if (op == "arith.andi") {
      return a & b;
    } else if (op == "arith.ori") {
      return a | b;
    } else if (op == "arith.xori") {
      return a ^ b;
    } else if (op == "arith.minui") {
      return std::min(a, b);
    } else if (op == "arith.maxui") {
      return std::max(a, b);
    } else if (op == "arith.minsi" || op == "arith.maxsi") {
      const bool a_first = signed_of(a, width) < signed_of(b, width);
      return a_first == (op == "arith.minsi") ? a : b;
    } else {
      fail("unknown operation: " + line);
    }
    if (no_wrap && (result < 0 || result >= (static_cast<__int128>(1) << (width - 1)))) fail("wraps: " + line);
    return cut(static_cast<std::uint64_t>(result), width);
  }

  std::map<std::string, Value> values_;
};

}  // namespace tilewright::layout
