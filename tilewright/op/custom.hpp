// An operation that its author declares: a stencil, a row softmax, a GEMM with another output layout. Declared operands
// with shapes and types are what the library checks, copies, tunes and binds; kernels for it are found by its name.
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
struct SlotDeclaration {
  std::string name;                // an identifier, unique in the operation
  std::vector<std::string> shape;  // an entry for each mode: a name, which binds the extent, or a number
  Access access = Access::read;
  std::vector<DType> types = {};  // those that it may have; empty: any whose elements are whole bytes

  bool operator==(const SlotDeclaration&) const = default;
};

/// A number that one call passes to the kernel.
struct NamedScalar {
  std::string name;
  double value = 0.0;

  bool operator==(const NamedScalar&) const = default;
};

struct Custom;

/// To bring an operation, construct this, or derive from it to add conditions, a reference, or a view as a GEMM.
/// Immutable, and shared between threads.
class Operation {
 public:
  /// `scalars`: their names and default values.
  /// @throws InvalidArgument where a name is no identifier or not unique, or is the name of a problem that the library
  /// has, where no slot is written, or where a slot has more than Dims::kMaxRank modes
  Operation(std::string name, std::vector<SlotDeclaration> slots, std::vector<NamedScalar> scalars = {});
  virtual ~Operation() = default;

  const std::string& name() const { return name_; }
  const std::vector<SlotDeclaration>& slots() const { return slots_; }
  const std::vector<NamedScalar>& scalars() const { return scalars_; }

  /// Conditions beyond the declared shapes and types.
  virtual Support check(const Custom& /*problem*/) const { return {}; }

  /// The problem as a GEMM: kernels of the GEMM families then serve it. What the view refers to must live as long as
  /// this operation, or be kept by the view.
  virtual Result<GemmView> view(const Custom& problem) const;

  /// Whether reference() says what the outputs must be. One that is seen as a GEMM needs none.
  virtual bool has_reference() const { return false; }
  /// Writes what the outputs must be, computed on the host. @pre has_reference(), tensors on the host
  virtual void reference(const Custom& problem) const;
  /// How far an output element x may be from the reference y: |x - y| <= tolerance * max(1, |y|).
  virtual double tolerance() const { return 0.0; }

 private:
  std::string name_;
  std::vector<SlotDeclaration> slots_;
  std::vector<NamedScalar> scalars_;
};

using OperationPtr = std::shared_ptr<const Operation>;

/// One problem of an operation.
struct Custom {
  OperationPtr operation;
  std::vector<NamedTensor> tensors;       // one for each slot, in the order of the declaration
  std::vector<NamedScalar> scalars = {};  // one for each declared scalar, in that order

  /// @throws InvalidArgument where a name is not declared, given twice, or a tensor is missing; scalars that are not
  /// given have their default values
  static Custom make(OperationPtr operation, std::vector<NamedTensor> tensors, std::vector<NamedScalar> scalars = {});

  /// @pre the operation declares it
  const Tensor& tensor(std::string_view name) const;
  double scalar(std::string_view name) const;
  /// The extent that a name of the declared shapes is bound to. @pre validate(problem), a shape has the name
  std::int64_t extent(std::string_view name) const;
  /// Whether no output has an element.
  bool is_empty() const;

  bool operator==(const Custom&) const = default;
};

std::vector<Slot> operands(Custom& problem);
std::vector<ConstSlot> operands(const Custom& problem);

/// Says what is wrong: ranks, extents that differ where one name binds them, types, strides, memory (see check_memory),
/// overlapping elements of an output, and what the operation's own check refuses.
Support validate(const Custom& problem);

/// What selects code of one operand: the element type, which of its modes is contiguous, and the largest alignment of
/// its address and its other strides, up to 16 bytes.
struct SlotDescription {
  std::string name;
  Access access = Access::read;
  DType element = DType::f32;
  int rank = 0;
  int contiguous = -1;  // mode of stride 1; -1: none
  int alignment = 1;    // elements; a power of two

  bool operator==(const SlotDescription&) const = default;
};

/// "x:read:f32:2d:contiguous1:4"
std::string to_string(const SlotDescription& description);

/// @pre validate(problem)
std::vector<SlotDescription> describe(const Custom& problem);

}  // namespace tilewright::op
