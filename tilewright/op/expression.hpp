// Epilogues written as C++ expressions: auto d = relu(alpha() * acc() + beta() * c() + row("bias")).
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/op/epilogue.hpp"

namespace tilewright::op {

/// A value of the epilogue graph, with the nodes that it is computed from. Common subexpressions are merged, and
/// operations on constants are folded.
class Expression {
 public:
  Expression(double constant);  // NOLINT(google-explicit-constructor): formulas contain literals
  explicit Expression(EpilogueNode leaf);
  Expression(EpilogueOp op, std::initializer_list<Expression> inputs, DType type = DType::f32);

  std::span<const EpilogueNode> nodes() const { return nodes_; }
  int root() const { return root_; }

 private:
  friend class EpilogueGraph;
  std::vector<EpilogueNode> nodes_;
  int root_ = 0;
};

/// Leaves.
Expression acc();
Expression c();
Expression alpha();
Expression beta();
/// A launch argument and its default value.
Expression scalar(std::string label, double value = 0.0);
Expression full(std::string label);    // m x n
Expression row(std::string label);     // 1 x n
Expression column(std::string label);  // m x 1
Expression single(std::string label);  // 1 x 1: a number in device memory
Expression row_index();
Expression column_index();

Expression operator+(const Expression& x, const Expression& y);
Expression operator-(const Expression& x, const Expression& y);
Expression operator*(const Expression& x, const Expression& y);
Expression operator/(const Expression& x, const Expression& y);
Expression operator-(const Expression& x);
Expression operator<(const Expression& x, const Expression& y);
Expression operator<=(const Expression& x, const Expression& y);
Expression operator>(const Expression& x, const Expression& y);
Expression operator>=(const Expression& x, const Expression& y);
Expression operator==(const Expression& x, const Expression& y);
Expression operator!=(const Expression& x, const Expression& y);

/// Whether convert() takes this type.
bool is_convertible(DType type);

/// Rounds x to `type` and converts it back to the compute type. make_epilogue() refuses types that are not
/// is_convertible().
Expression convert(DType type, const Expression& x);

/// A function that formulas can call by name: "gelu", "where".
struct NamedFunction {
  std::string_view name;
  int arity;
  Expression (*apply)(std::span<const Expression> inputs);
  std::string_view formula;  // for the documentation
};
std::span<const NamedFunction> functions();
/// @throws InvalidArgument for an unknown function or a wrong number of inputs
Expression call(std::string_view function, std::initializer_list<Expression> inputs);

/// An auxiliary output: {"aux", acc()}, {"sums", acc(), Reduction::sum, kColumnVector}.
struct NamedOutput {
  std::string name;
  Expression value;
  Reduction reduction = Reduction::none;
  Broadcast broadcast = kFull;
};

/// A reduction that formulas can use by name. It may apply a function first: "absmax" is the maximum of |x|.
struct NamedReduction {
  std::string_view name;
  Reduction reduction;
  Expression (*of)(const Expression& x);
  std::string_view formula;  // for the documentation
};
std::span<const NamedReduction> reductions();

/// Makes the graph that stores `d` to D and each of `outputs` to the tensor of its name.
Result<Epilogue> make_epilogue(std::string name, DType compute, const Expression& d,
                               const std::vector<NamedOutput>& outputs = {});

}  // namespace tilewright::op
