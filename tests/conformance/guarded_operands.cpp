#include "tests/conformance/guarded_operands.hpp"

#include <cstring>

#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/fill.hpp"

namespace tilewright::conformance {
namespace {

constexpr std::byte kPoison{0xff};

op::MemoryDevice memory_of(const runtime::DeviceProperties& properties) {
  return {properties.emulated ? op::MemoryDevice::Kind::emulator : op::MemoryDevice::Kind::cuda, properties.ordinal};
}

op::Tensor padded(const op::Tensor& tensor, const Placement& placement) {
  const Result<op::MatrixView> view = op::view_matrix(tensor, "operand");
  const op::Tensor matrix =
      op::matrix(0, tensor.dtype, tensor.rows(), tensor.columns(), view->layout, view->ld + placement.padding, {});
  if (tensor.shape.rank() == 2) return matrix;
  if (tensor.is_pointer_array()) return op::pointer_array(matrix, 0, tensor.batch(), tensor.pointer_alignment);
  if (tensor.batch_stride() == 0) return op::batched(matrix, tensor.batch(), 0);
  return op::batched(matrix, tensor.batch(), op::batched(matrix, 2).batch_stride() + placement.batch_padding);
}

// Bytes from one matrix of the batch in memory to the next.
std::size_t step_of(const op::Tensor& tensor, std::size_t red_zone) {
  if (!tensor.is_pointer_array()) return static_cast<std::size_t>(tensor.batch_stride() * bytes(tensor.dtype));
  const auto alignment = static_cast<std::size_t>(tensor.pointer_alignment);
  const std::size_t least = static_cast<std::size_t>(op::span_bytes(op::matrix_at(tensor, 0))) + red_zone;
  return (least / (2 * alignment) * 2 + 1) * alignment + 2 * alignment;  // an odd multiple of the alignment
}

// Bytes from the first element in memory to the end of the last one.
std::size_t span_of(const op::Tensor& tensor, std::size_t step) {
  if (tensor.is_empty()) return 0;
  return static_cast<std::size_t>(tensor.batch() - 1) * step +
         static_cast<std::size_t>(op::span_bytes(op::matrix_at(tensor, 0)));
}

}  // namespace

GuardedOperand::GuardedOperand(const std::shared_ptr<runtime::Device>& device, const op::Tensor& shape,
                               int offset_elements, std::size_t red_zone)
    : device_(device),
      begin_(red_zone + static_cast<std::size_t>(offset_elements * bytes(shape.dtype))),
      step_(step_of(shape, red_zone)),
      image_(begin_ + span_of(shape, step_) + red_zone, kPoison),
      buffer_(device, image_.size()),
      host_(shape),
      on_device_(shape) {
  on_device_.device = memory_of(device->properties());
  if (!shape.is_pointer_array()) {
    host_.address = reinterpret_cast<std::uint64_t>(image_.data()) + begin_;
    on_device_.address = buffer_.address() + begin_;
    return;
  }
  for (std::int64_t index = 0; index < shape.batch(); ++index) {
    host_pointers_.push_back(reinterpret_cast<std::uint64_t>(image_.data()) + begin(index));
    device_pointers_.push_back(buffer_.address() + begin(index));
  }
  pointer_buffer_ = runtime::DeviceBuffer(device, device_pointers_.size() * sizeof(std::uint64_t));
  host_.address = reinterpret_cast<std::uint64_t>(host_pointers_.data());
  on_device_.address = pointer_buffer_.address();
}

// Matrices of a pointer array with odd numbers lie before those with even numbers.
std::size_t GuardedOperand::begin(std::int64_t index) const {
  const std::int64_t place = !host_.is_pointer_array() ? index
                             : index % 2 == 1          ? index / 2
                                                       : host_.batch() / 2 + index / 2;
  return begin_ + static_cast<std::size_t>(place) * step_;
}

void GuardedOperand::upload() const {
  device_->copy_in(buffer_.address(), image_.data(), image_.size(), nullptr);
  if (device_pointers_.empty()) return;
  device_->copy_in(pointer_buffer_.address(), device_pointers_.data(), device_pointers_.size() * sizeof(std::uint64_t),
                   nullptr);
}

void GuardedOperand::download() {
  device_->copy_out(image_.data(), buffer_.address(), image_.size(), nullptr);
  device_->synchronize(nullptr);
}

std::string GuardedOperand::damage() const {
  std::vector<bool> belongs(image_.size(), false);
  const auto size = static_cast<std::size_t>(bytes(host_.dtype));
  for (std::int64_t index = 0; index < host_.batch(); ++index) {
    for (std::int64_t row = 0; row < host_.rows(); ++row) {
      for (std::int64_t column = 0; column < host_.columns(); ++column) {
        const auto element = static_cast<std::size_t>(host_.offset(row, column));
        for (std::size_t byte = 0; byte < size; ++byte) belongs[begin(index) + element * size + byte] = true;
      }
    }
  }
  for (std::size_t at = 0; at < image_.size(); ++at) {
    if (belongs[at] || image_[at] == kPoison) continue;
    return fmt::format("byte {} from the first element was overwritten",
                       static_cast<std::int64_t>(at) - static_cast<std::int64_t>(begin_));
  }
  return {};
}

namespace {

GuardedOperand place(const std::shared_ptr<runtime::Device>& device, const op::Tensor& shape,
                     const Placement& placement) {
  return {device, padded(shape, placement), placement.offset_elements, placement.red_zone};
}

}  // namespace

GuardedProblem::GuardedProblem(const std::shared_ptr<runtime::Device>& device, const op::Gemm& shape,
                               const Placements& placements)
    : a_(place(device, shape.a, placements.a)),
      b_(place(device, shape.b, placements.b)),
      c_(place(device, shape.c, placements.c)),
      d_(place(device, shape.d, placements.d)),
      host_(shape),
      on_device_(shape) {
  host_.a = a_.host();
  host_.b = b_.host();
  host_.c = c_.host();
  host_.d = d_.host();
  on_device_.a = a_.on_device();
  on_device_.b = b_.on_device();
  on_device_.c = c_.on_device();
  on_device_.d = d_.on_device();
  tensors_.reserve(shape.tensors.size());
  for (std::size_t i = 0; i < shape.tensors.size(); ++i) {
    tensors_.push_back(place(device, shape.tensors[i].tensor, placements.tensors));
    host_.tensors[i].tensor = tensors_[i].host();
    on_device_.tensors[i].tensor = tensors_[i].on_device();
  }
}

std::vector<GuardedProblem::Role> GuardedProblem::operands() const {
  std::vector<Role> all{{"A", &a_, false}, {"B", &b_, false}, {"C", &c_, false}, {"D", &d_, true}};
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::string& name = host_.tensors[i].name;
    all.push_back({name, &tensors_[i], op::is_output(host_.epilogue, name)});
  }
  return all;
}

std::vector<std::byte> GuardedProblem::inputs() const {
  std::vector<std::byte> all;
  for (const Role& role : operands()) {
    if (role.is_output) continue;
    all.insert(all.end(), role.operand->image().begin(), role.operand->image().end());
  }
  return all;
}

void GuardedProblem::upload() {
  for (const Role& role : operands()) {
    if (role.is_output) op::fill_poison(role.operand->host());
    role.operand->upload();
  }
  inputs_before_ = inputs();
}

void GuardedProblem::download() {
  for (GuardedOperand* operand : {&a_, &b_, &c_, &d_}) operand->download();
  for (GuardedOperand& operand : tensors_) operand.download();
}

std::string GuardedProblem::damage() const {
  for (const Role& role : operands()) {
    if (const std::string found = role.operand->damage(); !found.empty())
      return fmt::format("{}: {}", role.name, found);
  }
  return inputs() == inputs_before_ ? std::string() : "an input was overwritten";
}

}  // namespace tilewright::conformance
