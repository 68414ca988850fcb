// What happens to an accumulator before it is stored: a graph of scalar operations, applied to every element of D.
// The well-known epilogues are graphs with names.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright::op {

enum class EpilogueOp : std::uint8_t {
  accumulator,  // the element of A*B, converted to the compute type
  source,       // the element of C, converted to the compute type
  scalar,       // a named launch argument: alpha, beta, leaky_alpha
  constant,     // a number that selects code
  add,
  subtract,
  multiply,
  divide,
  maximum,  // NaN if either is NaN
  minimum,
  negate,
  exp,
  erf,
  tanh,
};

/// How many inputs an operation takes: 0, 1 or 2.
int arity(EpilogueOp op);
std::string_view name(EpilogueOp op);
/// The value of a function of one or two numbers, in f64. @pre arity(op) is 1 or 2; `y` counts for 2 only
double apply(EpilogueOp op, double x, double y);

struct EpilogueNode {
  EpilogueOp op = EpilogueOp::accumulator;
  std::array<int, 2> inputs{-1, -1};  // earlier nodes
  double value = 0.0;                 // of a constant; of a scalar other than alpha and beta
  std::string label;                  // of a scalar

  bool operator==(const EpilogueNode&) const = default;
};

/// A directed acyclic graph in topological order; the last node is stored to D, rounded to its type, integers
/// saturated.
struct Epilogue {
  std::string name;            // "linear_combination"
  DType compute = DType::f32;  // type of every node: f32, f64 or s32
  std::vector<EpilogueNode> nodes;

  bool operator==(const Epilogue&) const = default;

  bool reads_source() const;
  /// The labels of its launch arguments, in order of first appearance.
  std::vector<std::string> scalars() const;
  /// The scalar that multiplies every use of `leaf`, if there is one. Where it is 0 the leaf counts as 0, whatever it
  /// holds: C is not read where beta is 0, nor A and B where alpha is.
  std::optional<std::string> gate(EpilogueOp leaf) const;
};

/// A signature writes a node once for every use of it: its terms may double with each node that is used twice.
inline constexpr std::int64_t kMaxSignatureTerms = 4096;

/// Refuses names that are not identifiers, inputs that are not earlier nodes, constants that are not finite, functions
/// that the compute type lacks, and graphs whose signature would have more than kMaxSignatureTerms terms.
Support validate(const Epilogue& epilogue);

/// One line that determines the code: "linear_combination f32 add(mul($alpha,acc),mul($beta,c))". Values of scalars are
/// launch arguments and not in it. @pre validate(epilogue)
std::string signature(const Epilogue& epilogue);

/// Whether both compile to the same code: equal but for the values of scalars.
bool same_code(const Epilogue& x, const Epilogue& y);

/// The value stored for one element, in f64 (exact for s32), before the conversion to D's type.
double evaluate(const Epilogue& epilogue, double accumulator, double source, double alpha, double beta);

/// The number that a runtime scalar has in one call.
double scalar_value(const Epilogue& epilogue, std::string_view label, double alpha, double beta);

// The named graphs.

/// alpha * accumulator + beta * C
Epilogue linear_combination(DType compute = DType::f32);

/// clamp(alpha * accumulator + beta * C) to the range of the output type
Epilogue linear_combination_clamp(DType output, DType compute = DType::f32);

enum class Activation : std::uint8_t { identity, relu, leaky_relu, tanh, sigmoid, silu, hardswish, gelu };

std::string_view name(Activation activation);
std::optional<Activation> parse_activation(std::string_view text);

/// activation(alpha * accumulator + beta * C). `slope` is the launch argument of leaky_relu.
/// Formulas: leaky_relu max(x,0) + slope*min(x,0); sigmoid 1/(1+e^-x); silu x*sigmoid(x);
/// hardswish x*min(max(x+3,0),6)/6; gelu x/2*(1+erf(x/sqrt(2))).
Epilogue linear_combination_generic(Activation activation, DType compute = DType::f32, double slope = 0.2);

/// "linear_combination", "linear_combination_clamp" (or "clamp"), or an activation's name.
Result<Epilogue> named_epilogue(std::string_view text, DType output, DType compute);

}  // namespace tilewright::op
