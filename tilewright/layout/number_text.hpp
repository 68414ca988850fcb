// Numbers as text: C expressions, and operations of MLIR's arith dialect.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewright/layout/number.hpp"

namespace tilewright::layout {

/// Width in bits of the type that holds a Number in a kernel: 32 if it is known to be from 0 to 2^31 - 1, else 64.
int width_of(const Number& number);

/// The C name of an expression that the text has already computed, or "" for others. Variables need a name.
using NumberNames = std::function<std::string(const Number&)>;
/// A C expression, whose value is the Number's. Names stand for signed integers of width_of bits, or for unsigned ones
/// of 32 bits; a sum or product that needs 64 bits or may be negative is computed in `long long`. By default variables
/// have their own names.
std::string c_text(const Number& number);
std::string c_text(const Number& number, const NumberNames& names);

/// Prints Numbers as operations of MLIR's arith dialect in SSA form: one operation per node and region. The values have
/// the type i32 or i64 (width_of). Divisions, remainders and right shifts are unsigned; products that need 64 bits have
/// their factors extended first.
///
/// The printer belongs to one function. Its user opens a region wherever the printed operations do (a loop, a branch):
/// names that were defined in it are forgotten when it is left, because they are not visible after it.
class ArithPrinter {
 public:
  /// @param name_of the SSA name of a variable, "%m", which has the type i{width_of}
  /// @param emit receives each operation, without indentation and line end: "%n0 = arith.addi %m, %k : i32"
  /// @param prefix begins each name that the printer defines
  ArithPrinter(std::function<std::string(const Number&)> name_of, std::function<void(const std::string&)> emit,
               std::string prefix = "%n");

  /// The SSA name of a Number in its own type, after emitting the operations that are not yet visible.
  std::string value(const Number& number);
  /// The same in a type of 32 or 64 bits, extended if needed. @throws InvalidArgument for a Number that needs more bits
  std::string value(const Number& number, int width);
  /// The SSA name of a condition as an i1.
  std::string condition(const Number& number);

  void enter_region() { regions_.emplace_back(); }
  /// @pre a region was entered
  void leave_region();

 private:
  using Region = std::unordered_map<std::string, std::string>;  // from what was computed to its name

  const std::string* find(const std::string& key) const;
  std::string define(const std::string& key, const std::string& operation);
  std::string constant(std::int64_t value, int width);
  /// The names of both operands in one width. The first operand is printed first.
  std::pair<std::string, std::string> operands(const NumberNode& node, int width);
  std::string operation(const NumberNode& node);
  std::string binary(const NumberNode& node, const char* name, const char* flags = "");
  std::string with_constant(const NumberNode& node, const char* name, std::int64_t value, const char* flags = "");
  std::string quotient(const NumberNode& node);
  std::string comparison(const NumberNode& node, const char* predicate);
  std::string resized(const std::string& name, int from, int to);

  std::function<std::string(const Number&)> name_of_;
  std::function<void(const std::string&)> emit_;
  std::string prefix_;
  std::vector<Region> regions_;
  int count_ = 0;
};

}  // namespace tilewright::layout
