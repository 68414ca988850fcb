// The syntax of layout expressions, parsed to a tree whose nodes have a column.
//
//   expression = term { "o" term }                          composition, right to left
//   term       = operand [ ":" operand ]                    a layout: shape : stride
//   operand    = primary { "(" [ arguments ] ")" }          an index or a slice
//   primary    = integer { "@" integer } | "_"              3, _3 (as CuTe prints static integers), 1@0
//              | "(" [ arguments ] ")"                      a tuple; (layout) is the layout
//              | "<" arguments ">"                          a tiler
//              | "Sw" "<" integer "," integer "," integer ">"
//              | name "(" [ arguments ] ")"                 a function of the algebra
//   arguments  = expression { "," expression } [ "," ]
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/int_tuple.hpp"

namespace tilewright::layout {

/// A node of the syntax tree.
struct SyntaxNode {
  enum class Kind { leaf, tuple, tiler, swizzle, layout, composition, call, application };

  SyntaxNode(Kind kind_, int column_, std::vector<SyntaxNode> operands_ = {})
      : kind(kind_), column(column_), operands(std::move(operands_)) {}

  Kind kind;
  int column;                        // of its first character, from 1
  std::vector<SyntaxNode> operands;  // of an application: the applied value, then the arguments
  IntTuple leaf;                     // an integer, a scaled basis element or `_`
  std::string name;                  // the name of a called function
};

/// Limits for untrusted text. The depth bounds recursion over the tree.
inline constexpr int max_expression_length = 4096;
inline constexpr int max_expression_depth = 64;

/// @throws InvalidArgument "column 8: expected ')', got 'x'" if the text is not an expression, exceeds the limits, or
/// has an integer that does not fit in 63 bits
SyntaxNode parse_syntax(std::string_view text);

/// @throws InvalidArgument "column 8: reason"
[[noreturn]] void fail_at(int column, std::string_view reason);

/// verb(), with the column prepended to the message of an InvalidArgument.
template <class Verb>
auto at_column(int column, const Verb& verb) {
  try {
    return verb();
  } catch (const InvalidArgument& refused) {
    fail_at(column, refused.what());
  }
}

}  // namespace tilewright::layout
