#include "tests/conformance/guarded_tensors.hpp"

#include <cmath>
#include <set>

#include "tests/unit/op/direct_contraction.hpp"
#include "tests/unit/op/direct_convolution.hpp"
#include "tests/unit/op/tensor_elements.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::conformance {
namespace {

/// The memory of a tensor as one row.
op::Tensor row_of(const op::Tensor& tensor) {
  return op::matrix(std::uint64_t{0}, tensor.dtype, 1, op::span_bytes(tensor) / bytes(tensor.dtype));
}

const op::Tensor& output_of(const op::Conv2d& conv) { return conv.written(); }
const op::Tensor& output_of(const op::Contraction& contraction) { return contraction.d; }

}  // namespace

template <class Problem>
GuardedTensors<Problem>::GuardedTensors(const std::shared_ptr<runtime::Device>& device, const Problem& shape,
                                        const Placement& placement)
    : host_(shape), on_device_(shape) {
  const std::vector<op::Operand> on_host = op::operands(host_), on_device = op::operands(on_device_);
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    names_.emplace_back(on_host[i].name);
    operands_.emplace_back(device, row_of(*on_host[i].tensor), placement.offset_elements, placement.red_zone);
    on_host[i].tensor->address = operands_[i].host().address;
    on_device[i].tensor->address = operands_[i].on_device().address;
    on_device[i].tensor->device = operands_[i].on_device().device;
  }
}

template <class Problem>
void GuardedTensors<Problem>::upload() {
  const std::int64_t limit = host_.accumulator == DType::f16 ? 1 : 3;
  std::uint64_t seed = 1;
  for (const op::Operand& operand : op::operands(host_)) {
    if (op::is_written(operand.access)) continue;
    const op::Tensor& tensor = *operand.tensor;
    std::vector<double> values;
    op::for_each_element(tensor, [&](std::size_t, std::int64_t) { values.push_back(0.0); });
    if (values.empty()) continue;
    const op::Tensor drawn = op::matrix(values.data(), DType::f64, 1, static_cast<std::int64_t>(values.size()));
    op::fill_integers(drawn, tensor.dtype == DType::u8 ? 0 : -limit, limit, seed++);
    op::for_each_element(tensor,
                         [&](std::size_t index, std::int64_t offset) { op::store_at(tensor, offset, values[index]); });
  }
  for (const GuardedOperand& operand : operands_) operand.upload();
}

template <class Problem>
void GuardedTensors<Problem>::download() {
  for (GuardedOperand& operand : operands_) operand.download();
}

template <class Problem>
std::string GuardedTensors<Problem>::wrong() const {
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    if (const std::string damage = operands_[i].damage(); !damage.empty()) return names_[i] + ": " + damage;
  }
  const std::vector<double> sums = op::direct_sums(host_);
  const op::Tensor& written = output_of(host_);
  std::string found;
  std::set<std::int64_t> elements;
  op::for_each_element(written, [&](std::size_t index, std::int64_t offset) {
    elements.insert(offset);
    const double source = host_.beta == 0.0 ? 0.0 : host_.beta * op::load_at(host_.c, offset);
    const double expected = op::round_to(written.dtype, host_.alpha * sums[index] + source);
    const double actual = op::load_at(written, offset);
    if (found.empty() && actual != expected)
      found = fmt::format("element {} of the output is {}, expected {}", index, actual, expected);
  });
  // Gaps between the elements are still poison.
  const auto size = static_cast<std::size_t>(bytes(written.dtype));
  const auto* const memory = reinterpret_cast<const unsigned char*>(written.address);
  for (std::int64_t offset = 0; offset < op::span_bytes(written) / bytes(written.dtype); ++offset) {
    if (elements.contains(offset)) continue;
    for (std::size_t byte = 0; byte < size; ++byte) {
      if (memory[static_cast<std::size_t>(offset) * size + byte] != 0xff && found.empty())
        found = fmt::format("the gap at element {} of the output was overwritten", offset);
    }
  }
  return found;
}

template class GuardedTensors<op::Conv2d>;
template class GuardedTensors<op::Contraction>;

}  // namespace tilewright::conformance
