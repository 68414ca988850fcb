// Epilogues written as text: "let t = acc + row(bias); D = gelu(t); aux = t".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tilewright/op/epilogue.hpp"

namespace tilewright::op {

inline constexpr std::size_t kMaxEpilogueText = 16384;  // characters
inline constexpr int kMaxEpilogueTextDepth = 128;       // nested expressions

/// Parses an epilogue with the grammar
///
///   statements  statement {";" statement} [";"]
///   statement   ["let"] name "=" expression       assigns to D or to an output; let names a value for later statements
///               | [shape "("] name [")"] "=" reduction "(" expression ")"
///   shape       "row" (1 x n) | "column" (m x 1) | "single" (1 x 1, the default); "max" and "min" are reductions only
///               with a shape, and functions of two inputs without one
///   expression  sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]        a comparison gives 1 or 0
///   sum         product {("+" | "-") product}
///   product     unary {("*" | "/") unary}
///   unary       "-" unary | primary
///   primary     number | "(" expression ")" | function "(" expression {"," expression} ")"
///               | "row" "(" name ")" | "column" "(" name ")" | "single" "(" name ")" | "full" "(" name ")"
///               | "convert" "(" type "," expression ")" | "$" name | name
///
/// A name is acc, C, alpha, beta, row_index, column_index, a name defined by let, an output assigned earlier, or
/// otherwise an m x n tensor. $name is a launch argument: `scalars` must have its value, except for alpha and beta.
/// functions() and reductions() list the known functions and reductions. A refusal names the character.
Result<Epilogue> parse_epilogue(std::string_view text, DType compute,
                                const std::map<std::string, double>& scalars = {});

}  // namespace tilewright::op
