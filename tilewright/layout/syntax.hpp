// The syntax of layout expressions: text to a tree whose nodes know their column.
//
//   expression = term { "o" term }                          composition, the last applied first
//   term       = operand [ ":" operand ]                    a layout: shape : stride
//   operand    = primary { "(" [ arguments ] ")" }          an index or a slice
//   primary    = integer { "@" integer } | "_"              3, _3 (as CuTe prints static integers), 1@0
//              | "(" [ arguments ] ")"                      a tuple; of one layout, the layout
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

/// One phrase of an expression.
struct SyntaxNode {
  enum class Kind { leaf, tuple, tiler, swizzle, layout, composition, call, application };

  SyntaxNode(Kind kind_, int column_, std::vector<SyntaxNode> operands_ = {})
      : kind(kind_), column(column_), operands(std::move(operands_)) {}

  Kind kind;
  int column;                        // where it starts, from 1
  std::vector<SyntaxNode> operands;  // of an application: what is applied, then the arguments
  IntTuple leaf;                     // an integer, a scaled basis element or `_`
  std::string name;                  // of a call
};

/// What hostile text may cost: recursion over a tree is at most this deep.
inline constexpr int max_expression_length = 4096;
inline constexpr int max_expression_depth = 64;

/// @throws InvalidArgument "column 8: expected ')', got 'x'" where the text is not an expression, is longer or nested
/// deeper than the limits, or has an integer that does not fit in 63 bits.
SyntaxNode parse_syntax(std::string_view text);

/// @throws InvalidArgument "column 8: reason"
[[noreturn]] void fail_at(int column, std::string_view reason);

/// verb(), whose InvalidArgument is thrown again with the column before it.
template <class Verb>
auto at_column(int column, const Verb& verb) {
  try {
    return verb();
  } catch (const InvalidArgument& refused) {
    fail_at(column, refused.what());
  }
}

}  // namespace tilewright::layout
