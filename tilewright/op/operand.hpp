// The operands of a problem as a list: what copies, checks, tuning and bindings go over, whatever the problem is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/op/tensor.hpp"

namespace tilewright::op {

/// A tensor under the name that the problem's author gave it.
struct NamedTensor {
  std::string name;
  Tensor tensor;

  bool operator==(const NamedTensor&) const = default;
};

/// What a kernel does with an operand. An update reads elements that it writes.
enum class Access : std::uint8_t { read, write, update };

/// "read", "write", "update"
std::string_view name(Access access);
inline bool is_written(Access access) { return access != Access::read; }
inline bool is_read(Access access) { return access != Access::write; }

/// One operand. `TensorPointer` is Tensor* or const Tensor*. The name and the tensor belong to the problem.
template <class TensorPointer>
struct BasicSlot {
  std::string_view name;  // "A", "bias"
  TensorPointer tensor = nullptr;
  Access access = Access::read;
  bool is_used = true;         // by this call: C is not where beta is 0
  bool may_be_output = false;  // may be the very tensor that the problem writes: C may be D
};
using Slot = BasicSlot<Tensor*>;
using ConstSlot = BasicSlot<const Tensor*>;

/// The name as messages write it: "A", or "'bias'" of a tensor that the user named.
std::string quoted(std::string_view operand);

/// Addresses from the first element to past the last.
struct Interval {
  std::uint64_t begin, end;
};
Interval interval(const Tensor& tensor);

/// Refuses operands that are used and have null or misaligned addresses, that lie on different devices, and outputs
/// that overlap another operand, from the first element to the last. @pre every operand's strides are valid
Support check_memory(const std::vector<ConstSlot>& operands);

}  // namespace tilewright::op
