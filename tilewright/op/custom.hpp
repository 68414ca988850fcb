// A user-defined operation: a stencil, a row softmax, a GEMM with another output layout. The library checks, copies,
// tunes and binds its operands by their declared shapes and types, and finds kernels for it by its name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/op/gemm_view.hpp"
#include "tilewright/op/operand.hpp"

namespace tilewright::op {

/// One operand of an operation.
struct OperandDeclaration {
  std::string name;                // an identifier, unique in the operation
  std::vector<std::string> shape;  // one entry per mode: a name that is bound to the extent, or a number
  Access access = Access::read;
  std::vector<DType> types = {};  // the accepted types; empty: any type whose elements are whole bytes

  bool operator==(const OperandDeclaration&) const = default;
};

/// A scalar argument of the kernel.
struct NamedScalar {
  std::string name;
  double value = 0.0;

  bool operator==(const NamedScalar&) const = default;
};

struct Custom;

/// To define an operation, construct this class, or derive from it to add conditions, a reference, or a view as a GEMM.
/// Objects are immutable and shared between threads.
class Operation {
 public:
  /// `scalars` has their names and default values.
  /// @throws InvalidArgument if a name is not an identifier, is not unique, or is a built-in operation's, if no operand
  /// is written, or if one has more than Dims::kMaxRank modes
  Operation(std::string name, std::vector<OperandDeclaration> operands, std::vector<NamedScalar> scalars = {});
  virtual ~Operation() = default;

  const std::string& name() const { return name_; }
  const std::vector<OperandDeclaration>& operands() const { return operands_; }
  const std::vector<NamedScalar>& scalars() const { return scalars_; }

  /// Conditions beyond the declared shapes and types.
  virtual Support check(const Custom& /*problem*/) const { return {}; }

  /// The problem as a GEMM, so that the GEMM families can compute it; refused by default. Objects that the view refers
  /// to must live as long as this operation, or be owned by GemmView::keeps.
  virtual Result<GemmView> view(const Custom& problem) const;

  /// Whether reference() is implemented. An operation with a GEMM view does not need it.
  virtual bool has_reference() const { return false; }
  /// Computes the expected outputs on the host. @pre has_reference(), tensors on the host
  virtual void reference(const Custom& problem) const;
  /// An output element x is accepted if |x - y| <= tolerance * max(1, |y|), where y is the reference.
  virtual double tolerance() const { return 0.0; }

 private:
  std::string name_;
  std::vector<OperandDeclaration> operands_;
  std::vector<NamedScalar> scalars_;
};

using OperationPtr = std::shared_ptr<const Operation>;

/// One problem of an operation.
struct Custom {
  OperationPtr operation;
  std::vector<NamedTensor> tensors;       // one for each operand, in the order of the declaration
  std::vector<NamedScalar> scalars = {};  // one for each declared scalar, in the order of the declaration

  /// Scalars that are not given have their default values.
  /// @throws InvalidArgument if a name is not declared or is given twice, or a tensor is missing
  static Custom make(OperationPtr operation, std::vector<NamedTensor> tensors, std::vector<NamedScalar> scalars = {});

  /// @pre the operation declares it
  const Tensor& tensor(std::string_view name) const;
  double scalar(std::string_view name) const;
  /// The extent that `name` in the declared shapes is bound to. @pre validate(problem), a shape has the name
  std::int64_t extent(std::string_view name) const;
  /// Whether all outputs are empty.
  bool is_empty() const;

  bool operator==(const Custom&) const = default;
};

std::vector<Operand> operands(Custom& problem);
std::vector<ConstOperand> operands(const Custom& problem);

/// Refuses wrong ranks and types, one extent name with two values, invalid strides and memory (see check_memory),
/// outputs whose elements overlap, and what Operation::check refuses.
Support validate(const Custom& problem);

/// The properties of one operand that select code. The alignment is the largest, up to 16 bytes, that divides the
/// address and all strides except the contiguous mode's.
struct OperandSignature {
  std::string name;
  Access access = Access::read;
  DType element = DType::f32;
  int rank = 0;
  int contiguous = -1;  // the mode with stride 1; -1: none
  int alignment = 1;    // elements, a power of two

  bool operator==(const OperandSignature&) const = default;
};

/// "x:read:f32:2d:contiguous1:4"
std::string to_string(const OperandSignature& signature);

/// @pre validate(problem)
std::vector<OperandSignature> describe(const Custom& problem);

}  // namespace tilewright::op
