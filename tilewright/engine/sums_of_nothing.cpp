#include "tilewright/engine/sums_of_nothing.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tilewright/engine/launch.hpp"

namespace tilewright::engine {
namespace {

/// The offsets of all elements in bytes, ascending.
std::vector<std::int64_t> element_offsets(const op::Tensor& tensor) {
  std::vector<std::int64_t> offsets{0};
  for (int mode = 0; mode < tensor.shape.rank(); ++mode) {
    const std::size_t count = offsets.size();
    for (std::int64_t index = 1; index < tensor.shape[mode]; ++index) {
      for (std::size_t i = 0; i < count; ++i)
        offsets.push_back(offsets[i] + index * tensor.stride[mode] * bytes(tensor.dtype));
    }
  }
  std::ranges::sort(offsets);
  return offsets;
}

/// Calls store(offset, bytes) for each run of adjacent elements.
template <class Store>
void for_each_run(const op::Tensor& tensor, const Store& store) {
  const std::vector<std::int64_t> offsets = element_offsets(tensor);
  const std::int64_t size = bytes(tensor.dtype);
  std::int64_t begin = offsets.front(), end = begin;
  for (const std::int64_t offset : offsets) {
    if (offset > end) {
      store(begin, static_cast<std::size_t>(end - begin));
      begin = offset;
    }
    end = offset + size;
  }
  store(begin, static_cast<std::size_t>(end - begin));
}

}  // namespace

void store_sums_of_nothing(const op::Problem& problem, runtime::Device& device, runtime::StreamHandle stream) {
  const bool is_on_host = op::device(problem).kind == op::MemoryDevice::Kind::host;
  for (const op::ConstOperand& operand : op::operands(problem)) {
    const op::Tensor& tensor = *operand.tensor;
    if (!op::is_written(operand.access) || tensor.address == 0 || tensor.is_empty()) continue;
    if (!is_on_host) check_place(problem, device).or_throw();
    for_each_run(tensor, [&](std::int64_t offset, std::size_t size) {
      const std::uint64_t to = tensor.address + static_cast<std::uint64_t>(offset);
      if (is_on_host) {
        std::memset(reinterpret_cast<void*>(to), 0, size);
      } else {
        device.fill(to, 0, size, stream);
      }
    });
  }
}

}  // namespace tilewright::engine
