#include "tilewright/engine/host_operands.hpp"

#include "tilewright/op/epilogue_tensors.hpp"

namespace tilewright::engine {
namespace {

bool is_packed(const op::Tensor& tensor) {
  return op::span_bytes(tensor) == tensor.batch() * tensor.rows() * tensor.columns() * bytes(tensor.dtype);
}

}  // namespace

op::MemoryDevice memory_device(const runtime::DeviceProperties& properties) {
  return {properties.emulated ? op::MemoryDevice::Kind::emulator : op::MemoryDevice::Kind::cuda, properties.ordinal};
}

HostOperands::HostOperands(const op::Gemm& host, const std::shared_ptr<runtime::Device>& device,
                           runtime::StreamHandle stream)
    : device_(device), stream_(stream), host_outputs_{host.d}, on_device_(host) {
  const bool reads_source = op::reads_source(host);
  const bool c_is_d = reads_source && host.c == host.d;
  a_ = place(on_device_.a, op::reads_product(host));
  b_ = place(on_device_.b, op::reads_product(host));
  d_ = place(on_device_.d, c_is_d || !is_packed(host.d));
  if (c_is_d) {
    on_device_.c = on_device_.d;
  } else if (reads_source) {
    c_ = place(on_device_.c, true);
  }
  outputs_.push_back(d_.address());
  for (op::NamedTensor& each : on_device_.tensors) {
    const op::Tensor on_host = each.tensor;
    const bool is_output = op::is_output(host.epilogue, each.name);
    tensors_.push_back(place(each.tensor, !is_output || !is_packed(on_host)));
    if (!is_output) continue;
    host_outputs_.push_back(on_host);
    outputs_.push_back(each.tensor.address);
  }
}

runtime::DeviceBuffer HostOperands::place(op::Tensor& tensor, bool copies_in) {
  const auto size = static_cast<std::size_t>(op::span_bytes(tensor));
  runtime::DeviceBuffer buffer(device_, size, stream_);
  if (copies_in && size != 0) {
    device_->copy_in(buffer.address(), reinterpret_cast<const void*>(tensor.address), size, stream_);
  }
  tensor.address = buffer.address();
  tensor.device = memory_device(device_->properties());
  return buffer;
}

void HostOperands::copy_out() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto size = static_cast<std::size_t>(op::span_bytes(host_outputs_[i]));
    if (size != 0) device_->copy_out(reinterpret_cast<void*>(host_outputs_[i].address), outputs_[i], size, stream_);
  }
  device_->synchronize(stream_);
}

}  // namespace tilewright::engine
