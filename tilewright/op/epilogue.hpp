// What happens to an accumulator before it is stored: a graph of scalar operations, applied to every element of D, with
// tensors that it reads and writes beside D.
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
  tensor,       // an element of a named tensor, converted to the compute type
  row_index,    // of D
  column_index,
  add,
  subtract,
  multiply,
  divide,
  maximum,  // NaN if either is NaN
  minimum,
  power,
  less,  // comparisons are 1 where they hold, else 0
  less_equal,
  equal,
  negate,
  absolute,
  reciprocal,  // within a unit in the last place in f32, where a division is rounded
  square_root,
  reciprocal_square_root,
  exp,
  log,
  log1p,
  erf,
  tanh,
  floor,
  round,    // halves to even
  convert,  // to the node's type and back: rounded, integers and 8-bit floats saturated
  fma,      // x * y + z, rounded once
  where,    // y where x is not 0, else z
  even,     // of columns 2j and 2j+1 of A*B, x at the first
  odd,      // and at the second
};

/// How many inputs an operation takes: 0 to 3.
int arity(EpilogueOp op);
std::string_view name(EpilogueOp op);
/// Whether it has a value in s32: the rest needs a float compute type.
bool is_integral(EpilogueOp op);
/// The value of a function of one to three numbers, in f64. @pre arity(op) is 1 to 3, op is not convert, even or odd
double apply(EpilogueOp op, double x, double y = 0.0, double z = 0.0);

/// Along which of D's modes a tensor of the epilogue has elements of its own; along the others one serves all.
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
  double value = 0.0;                     // of a constant; of a scalar other than alpha and beta
  std::string label = {};                 // of a scalar or a tensor
  Broadcast broadcast = {};               // of a tensor
  DType type = DType::f32;                // that convert rounds to

  bool operator==(const EpilogueNode&) const = default;
};

/// How values of a node at many elements of D become one. Sums are of the compute type, in an order that shape and
/// kernel decide alone; s32 wraps. The others are NaN if any is.
enum class Reduction : std::uint8_t { none, sum, maximum, minimum };

/// "sum", "max", "min"; "none"
std::string_view name(Reduction reduction);
/// What changes no other value: 0, or the end of the range.
double identity(Reduction reduction, DType compute);
/// Of two values in f64. @pre not none
double combine(Reduction reduction, double x, double y);

/// A node that is stored to a tensor of its own: m x n, or where it is reduced of fewer elements. A reduced node is
/// whole only when all of D is computed: nothing of the graph can read it.
struct EpilogueOutput {
  std::string label;
  int node = 0;
  Reduction reduction = Reduction::none;
  Broadcast broadcast = kFull;  // of a reduction: kRowVector has one result for each column, kColumnVector for each row

  bool operator==(const EpilogueOutput&) const = default;
};

/// A directed acyclic graph in topological order. Stores are rounded to the tensor's type; integers and 8-bit floats
/// saturate.
struct Epilogue {
  std::string name;            // "linear_combination"
  DType compute = DType::f32;  // type of every node: f32, f64 or s32
  std::vector<EpilogueNode> nodes;
  std::vector<EpilogueOutput> outputs = {};  // beside D
  int d = -1;                                // the node that is stored to D; -1: the last

  bool operator==(const Epilogue&) const = default;

  int node_of_d() const { return d < 0 ? static_cast<int>(nodes.size()) - 1 : d; }
  bool reads_source() const;
  /// The labels of its launch arguments, in order of first appearance.
  std::vector<std::string> scalars() const;
  /// Whether an element of D is computed from two neighbouring columns of A*B, whose number is even then.
  bool pairs_columns() const;
  /// Columns of A*B for each of D.
  int columns_per_element() const { return pairs_columns() ? 2 : 1; }
  /// Of each node, whether it may have another value at each column of A*B: what reads such, but for even and odd.
  std::vector<bool> varies_by_column() const;
  /// Its tensors, without outputs: the first node of each label, in order.
  std::vector<const EpilogueNode*> tensors() const;
  /// The scalar that multiplies every use of `leaf`, if there is one. Where it is 0 the leaf counts as 0, whatever it
  /// holds: C is not read where beta is 0, nor A and B where alpha is.
  std::optional<std::string> gate(EpilogueOp leaf) const;
};

inline constexpr int kMaxEpilogueNodes = 512;
inline constexpr int kMaxEpilogueTensors = 16;  // that are read, and as many that are written
inline constexpr int kMaxEpilogueScalars = 16;

/// A signature writes a node once for every use of it: its terms may double with each node that is used twice.
inline constexpr std::int64_t kMaxSignatureTerms = 4096;

/// Refuses names that are not identifiers or that two things bear, inputs that are not earlier nodes, constants that
/// are not finite, functions that the compute type lacks, more than the numbers above; where columns are paired, a D
/// that is not of pairs, outputs that are, reductions and C.
Support validate(const Epilogue& epilogue);

/// The same of D transposed: what lies along M lies along N. @pre it does not pair columns
Epilogue transposed(const Epilogue& epilogue);

/// One line that determines the code: "linear_combination f32 add(mul($alpha,acc),mul($beta,c))"; further outputs
/// follow as "; aux=..." and "; row(total)=sum(...)". Values of scalars are launch arguments and not in it.
/// @pre validate(epilogue)
std::string signature(const Epilogue& epilogue);

/// Whether both compile to the same code: equal but for the values of scalars.
bool same_code(const Epilogue& x, const Epilogue& y);

/// What one element of D is computed from.
struct EpilogueElement {
  double accumulator = 0.0;
  double source = 0.0;  // C
  double alpha = 1.0, beta = 0.0;
  std::vector<double> tensors = {};  // of Epilogue::tensors(), in that order
  double row = 0.0, column = 0.0;
};

/// The value of every node in f64 (exact for s32), before any conversion to a tensor's type. Where columns are paired
/// both are as `element` says.
std::vector<double> evaluate_nodes(const Epilogue& epilogue, const EpilogueElement& element);
/// The same at two columns of A*B that are a pair.
std::array<std::vector<double>, 2> evaluate_pair(const Epilogue& epilogue,
                                                 const std::array<EpilogueElement, 2>& columns);

/// The value stored to D of an epilogue without tensors.
double evaluate(const Epilogue& epilogue, double accumulator, double source, double alpha, double beta);

/// The number that a runtime scalar has in one call.
double scalar_value(const Epilogue& epilogue, std::string_view label, double alpha, double beta);

}  // namespace tilewright::op
