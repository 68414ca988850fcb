// Epilogues written as text: "let t = acc + row(bias); D = gelu(t); aux = t".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tilewright/op/epilogue.hpp"

namespace tilewright::op {

inline constexpr std::size_t kMaxEpilogueText = 16384;  // characters
inline constexpr int kMaxEpilogueTextDepth = 128;       // expressions within each other

/// The graph of a text, of the grammar
///
///   statements  statement {";" statement} [";"]
///   statement   ["let"] name "=" expression       D, or an output of that name; with let a name for later statements
///               | [shape "("] name [")"] "=" reduction "(" expression ")"
///   shape       "row" (1 x n) | "column" (m x 1) | "single" (1 x 1, what a name alone stands for); with it "max" and
///               "min" are reductions too
///   expression  sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]        1 where it holds, else 0
///   sum         product {("+" | "-") product}
///   product     unary {("*" | "/") unary}
///   unary       "-" unary | primary
///   primary     number | "(" expression ")" | function "(" expression {"," expression} ")"
///               | "row" "(" name ")" | "column" "(" name ")" | "single" "(" name ")" | "full" "(" name ")"
///               | "convert" "(" type "," expression ")" | "$" name | name
///
/// A name is acc, C, alpha, beta, row_index, column_index, one that let has given, an output that was assigned, or else
/// a tensor of m x n. $name is a launch argument; `scalars` has its value, and it is refused without one unless it is
/// alpha or beta. Functions are those of functions(), reductions those of reductions(). Refusals say at which
/// character.
Result<Epilogue> parse_epilogue(std::string_view text, DType compute,
                                const std::map<std::string, double>& scalars = {});

}  // namespace tilewright::op
