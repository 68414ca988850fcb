// The operands of any problem as a list, for code that copies, checks, tunes and binds them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// A tensor and its name.
struct NamedTensor {
  std::string name;
  Tensor tensor;

  bool operator==(const NamedTensor&) const = default;
};

/// How a kernel accesses an operand; `update` means that it reads and writes it.
enum class Access : std::uint8_t { read, write, update };

/// "read", "write", "update"
std::string_view name(Access access);
inline bool is_written(Access access) { return access != Access::read; }
inline bool is_read(Access access) { return access != Access::write; }

/// One operand. `TensorPointer` is Tensor* or const Tensor*. Name and tensor refer to the problem.
template <class TensorPointer>
struct BasicOperand {
  std::string_view name;  // "A", "bias"
  TensorPointer tensor = nullptr;
  Access access = Access::read;
  bool is_used = true;             // whether this call accesses it; false for C if beta is 0
  bool may_be_output = false;      // whether it may be the same elements as an output, as C may be D
  bool is_partly_written = false;  // an output of which a call may leave elements as they were
};
using Operand = BasicOperand<Tensor*>;
using ConstOperand = BasicOperand<const Tensor*>;

/// The operand's name in messages: "A", or "'bias'" for a name given by the user.
std::string quoted(std::string_view operand);

/// Addresses from the first element to one past the last; of a pointer array, those of the array.
struct Interval {
  std::uint64_t begin, end;
};
Interval interval(const Tensor& tensor);

/// Checks the operands that are used: refuses null and misaligned addresses, different devices, and outputs whose span
/// overlaps another operand's. The matrices of a pointer array are not known here, only the array. @pre every operand's
/// strides are valid
Support check_memory(const std::vector<ConstOperand>& operands);

}  // namespace tilewright::op
