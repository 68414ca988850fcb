#include "tilewright/op/operand.hpp"

#include <algorithm>
#include <array>

namespace tilewright::op {
namespace {

bool is_operand_letter(std::string_view name) { return name.size() == 1 && name[0] >= 'A' && name[0] <= 'D'; }

bool overlap(const Interval& x, const Interval& y) { return x.begin < y.end && y.begin < x.end; }

Support check_overlap(const ConstOperand& later, const ConstOperand& earlier) {
  if (!is_written(later.access) && !is_written(earlier.access)) return {};
  const ConstOperand& input = is_written(later.access) ? earlier : later;
  if (input.may_be_output && *later.tensor == *earlier.tensor) return {};
  const Interval x = interval(*later.tensor), y = interval(*earlier.tensor);
  if (!overlap(x, y)) return {};
  return refuse("{} [{:#x}, {:#x}) overlaps {} [{:#x}, {:#x})", quoted(later.name), x.begin, x.end,
                quoted(earlier.name), y.begin, y.end)
      .as(RefusalCode::overlap)
      .of(later.name == "D" ? earlier.name : later.name);
}

}  // namespace

std::string_view name(Access access) {
  constexpr std::array<std::string_view, 3> kNames{"read", "write", "update"};
  return kNames[static_cast<std::size_t>(access)];
}

std::string quoted(std::string_view operand) {
  return is_operand_letter(operand) ? std::string(operand) : fmt::format("'{}'", operand);
}

Interval interval(const Tensor& tensor) {
  return {tensor.address, tensor.address + static_cast<std::uint64_t>(span_bytes(tensor))};
}

Support check_memory(const std::vector<ConstOperand>& operands) {
  const auto output = std::ranges::find_if(operands, [](const ConstOperand& each) { return is_written(each.access); });
  if (output == operands.end()) return {};
  const MemoryDevice& device = output->tensor->device;
  const bool is_shape_only = device.kind == MemoryDevice::Kind::shape;
  for (auto operand = operands.begin(); operand != operands.end(); ++operand) {
    if (!operand->is_used) continue;
    const Tensor& tensor = *operand->tensor;
    const auto element = static_cast<std::uint64_t>(bytes(tensor.dtype));
    if (tensor.address == 0 && !is_shape_only)
      return refuse("{} is a null pointer", quoted(operand->name)).as(RefusalCode::memory).of(operand->name);
    if (tensor.is_pointer_array() && tensor.address % kPointerBytes != 0) {
      return refuse("{} must be an array of pointers that is aligned to {} bytes, got address {:#x}",
                    quoted(operand->name), kPointerBytes, tensor.address)
          .as(RefusalCode::alignment)
          .of(operand->name);
    }
    if (!tensor.is_pointer_array() && tensor.address % element != 0) {
      return refuse("{} must be aligned to its element size of {} bytes, got address {:#x}", quoted(operand->name),
                    element, tensor.address)
          .as(RefusalCode::alignment)
          .of(operand->name);
    }
    if (tensor.device != device) {
      return refuse("{} is on {}, but {} is on {}", quoted(operand->name), to_string(tensor.device),
                    quoted(output->name), to_string(device))
          .as(RefusalCode::memory)
          .of(operand->name);
    }
    if (is_shape_only) continue;
    for (auto earlier = operands.begin(); earlier != operand; ++earlier) {
      if (!earlier->is_used) continue;
      if (const Support apart = check_overlap(*operand, *earlier); !apart) return apart;
    }
  }
  return {};
}

}  // namespace tilewright::op
