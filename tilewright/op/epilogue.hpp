// The epilogue graph: elementwise operations that compute D from the accumulator, the source C, scalars and auxiliary
// tensors, and that may store further outputs and reductions.
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
  constant,     // a literal, which is part of the code
  tensor,       // an element of a named tensor, converted to the compute type
  row_index,    // of the element of D
  column_index,
  add,
  subtract,
  multiply,
  divide,
  maximum,  // NaN if either is NaN
  minimum,
  power,
  less,  // comparisons give 1 or 0
  less_equal,
  equal,
  negate,
  absolute,
  reciprocal,  // within 1 ulp in f32; divide is correctly rounded
  square_root,
  reciprocal_square_root,
  exp,
  log,
  log1p,
  erf,
  tanh,
  logistic,  // 1 / (1 + e^-x); in f32, the relative error is at most (7 + 1.3 |x|) * 2^-24, and results below 2^-126
             // are 0
  floor,
  round,    // to nearest, ties to even
  convert,  // to the node's type and back; integers and 8-bit floats saturate
  fma,      // x * y + z, rounded once
  where,    // x != 0 ? y : z
  even,     // the value of x at the even column 2j of the pair (2j, 2j+1) of A*B
  odd,      // the value of x at the odd column 2j+1
};

/// The number of inputs, 0 to 3.
int arity(EpilogueOp op);
std::string_view name(EpilogueOp op);
/// Whether the operation is defined for compute type s32; the others need a float compute type.
bool is_integral(EpilogueOp op);
/// Evaluates the operation in f64. @pre arity(op) is 1 to 3, op is not convert, even or odd
double apply(EpilogueOp op, double x, double y = 0.0, double z = 0.0);

/// The modes of D that an epilogue tensor has; it is broadcast along the others.
struct Broadcast {
  bool along_m = true, along_n = true;
  bool operator==(const Broadcast&) const = default;
};
inline constexpr Broadcast kFull{true, true}, kRowVector{false, true}, kColumnVector{true, false},
    kSingle{false, false};

/// "full", "row" (1 x n), "column" (m x 1), "single" (1 x 1)
std::string_view name(const Broadcast& broadcast);

struct EpilogueNode {
  EpilogueOp op = EpilogueOp::accumulator;
  std::array<int, 3> inputs{-1, -1, -1};  // earlier nodes
  double value = 0.0;                     // constant: its value; scalar other than alpha and beta: its default
  std::string label = {};                 // the name of a scalar or a tensor
  Broadcast broadcast = {};               // for a tensor
  DType type = DType::f32;                // the target type of convert

  bool operator==(const EpilogueNode&) const = default;
};

/// How the values of a node are reduced over elements of D. A sum is computed in the compute type, in an order that
/// depends only on shape and kernel; s32 wraps. Maximum and minimum are NaN if any value is NaN.
enum class Reduction : std::uint8_t { none, sum, maximum, minimum };

/// "none", "sum", "max", "min"
std::string_view name(Reduction reduction);
/// The identity element: 0 for a sum, the lowest or highest value of the compute type for maximum or minimum.
double identity(Reduction reduction, DType compute);
/// Reduces two values in f64. @pre reduction is not none
double combine(Reduction reduction, double x, double y);

/// A node that is stored to an auxiliary tensor: m x n, or smaller if it is reduced. A reduction is complete only after
/// all of D is computed, so no node can read its result.
struct EpilogueOutput {
  std::string label;
  int node = 0;
  Reduction reduction = Reduction::none;
  Broadcast broadcast = kFull;  // shape of a reduction: kRowVector reduces along M, kColumnVector along N

  bool operator==(const EpilogueOutput&) const = default;
};

/// A directed acyclic graph in topological order. A store rounds to the tensor's type; integers and 8-bit floats
/// saturate.
struct Epilogue {
  std::string name;            // "linear_combination"
  DType compute = DType::f32;  // compute type of every node: f32, f64 or s32
  std::vector<EpilogueNode> nodes;
  std::vector<EpilogueOutput> outputs = {};  // stored in addition to D
  int d = -1;                                // the node that is stored to D; -1: the last node

  bool operator==(const Epilogue&) const = default;

  int node_of_d() const { return d < 0 ? static_cast<int>(nodes.size()) - 1 : d; }
  bool reads_source() const;
  /// Labels of the scalars, in order of first appearance; this is also the order of the launch arguments.
  std::vector<std::string> scalars() const;
  /// Whether each element of D is computed from a pair of adjacent columns of A*B, as in a gated epilogue (SwiGLU). N
  /// must be even then.
  bool is_gated() const;
  /// The number of columns of A*B for each column of D.
  int columns_per_element() const { return is_gated() ? 2 : 1; }
  /// For each node, whether its value may differ between the two columns of a pair. even() and odd() never vary.
  std::vector<bool> varies_by_column() const;
  /// The tensors that it reads: the first node of each label, in order.
  std::vector<const EpilogueNode*> tensors() const;
  /// The scalar that multiplies every use of `leaf`, if there is one. If that scalar is 0, the leaf counts as 0 and is
  /// not read: C is not read if beta is 0, A and B are not read if alpha is 0.
  std::optional<std::string> gate(EpilogueOp leaf) const;
};

inline constexpr int kMaxEpilogueNodes = 512;
inline constexpr int kMaxEpilogueTensors = 16;  // limit of the tensors read, and again of the outputs
inline constexpr int kMaxEpilogueScalars = 16;

/// The text of a signature expands every use of a node, so it can double with each node that is used twice.
inline constexpr std::int64_t kMaxSignatureTerms = 4096;

/// Refuses names that are not identifiers or not unique, inputs that are not earlier nodes, constants that are not
/// finite, functions that the compute type lacks, and graphs beyond the limits above. If columns are paired, it refuses
/// reductions, reads of C, a D that differs between the two columns, and outputs that do not.
Support validate(const Epilogue& epilogue);

/// The graph for the transposed D: M and N are exchanged in every broadcast and index. @pre it does not pair columns
Epilogue transposed(const Epilogue& epilogue);

/// One line that determines the code: "linear_combination f32 add(mul($alpha,acc),mul($beta,c))". Outputs follow as
/// "; aux=..." and "; row(total)=sum(...)". The values of scalars are launch arguments and are not part of it.
/// @pre validate(epilogue)
std::string signature(const Epilogue& epilogue);

/// Whether both select the same code: they are equal except for the values of scalars.
bool same_code(const Epilogue& x, const Epilogue& y);

/// The inputs of one element of D.
struct EpilogueElement {
  double accumulator = 0.0;
  double source = 0.0;  // C
  double alpha = 1.0, beta = 0.0;
  std::vector<double> tensors = {};  // one for each of Epilogue::tensors(), in that order
  double row = 0.0, column = 0.0;
};

/// The value of every node in f64 (exact for s32), before any conversion to a tensor's type. If columns are paired,
/// both columns have the inputs `element`.
std::vector<double> evaluate_nodes(const Epilogue& epilogue, const EpilogueElement& element);
/// The values at the two columns of a pair.
std::array<std::vector<double>, 2> evaluate_pair(const Epilogue& epilogue,
                                                 const std::array<EpilogueElement, 2>& columns);

/// The value of D before rounding, for an epilogue without tensors.
double evaluate(const Epilogue& epilogue, double accumulator, double source, double alpha, double beta);

/// The value of a scalar in a call with this alpha and beta.
double scalar_value(const Epilogue& epilogue, std::string_view label, double alpha, double beta);

}  // namespace tilewright::op
