// A tensor in its own device memory with red zones around it, and a copy of both on the host, to detect out-of-bounds
// writes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/op/reference.hpp"
#include "tilewright/op/tensor.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::tune {

/// Copies of tensors have the same address modulo this number of bytes as the caller's.
inline constexpr std::size_t kGuardedAlignment = runtime::kAllocationAlignment;

class GuardedTensor {
 public:
  /// Allocates a tensor with the extents, type and strides of `shape`, and its address modulo kGuardedAlignment, and
  /// `red_zone` bytes before and after it, a multiple of kGuardedAlignment. The host image is NaN everywhere. The
  /// matrices of a pointer array are no more aligned than it declares, and have at least 16 bytes between them.
  /// @throws OutOfMemory
  GuardedTensor(std::string label, std::shared_ptr<runtime::Device> device, const op::Tensor& shape,
                std::size_t red_zone);

  const std::string& label() const { return label_; }
  const op::Tensor& on_host() const { return on_host_; }  // within the image
  const op::Tensor& on_device() const { return on_device_; }
  /// The same elements on the host as a tensor that is no pointer array.
  const op::Tensor& strided() const { return strided_; }
  /// The host copy of the elements and the red zones.
  std::span<const std::byte> image() const { return image_; }

  /// Copy the image to the device, and back; both are enqueued on the null stream.
  void upload() const;
  void fetch();
  /// Fills elements and red zones on the device with a poison pattern; enqueued.
  void poison() const;
  /// Whether the device memory equals the image; waits for the device.
  bool is_intact() const;

  /// After poison() and fetch(): describes the first byte written outside the elements; empty if there is none.
  /// @pre the tensor's elements do not overlap
  std::string find_out_of_bounds_write() const;
  /// After fetch(): the elements whose bits differ from those in `expected`, another image of an equally shaped tensor;
  /// at most the first 2^20 in the order of addresses. @pre the tensor's elements do not overlap
  std::vector<op::Place> differing_elements(std::span<const std::byte> expected) const;

 private:
  std::string label_;
  std::shared_ptr<runtime::Device> device_;
  op::Tensor strided_;                   // see strided()
  std::size_t begin_;                    // offset of the first element in image and buffer
  std::unique_ptr<std::byte[]> memory_;  // not a vector, whose initialization could not be interrupted
  std::span<std::byte> image_;           // red zone, elements, red zone
  runtime::DeviceBuffer buffer_;
  std::vector<std::uint64_t> addresses_;  // the array of a pointer array, on the host
  runtime::DeviceBuffer address_buffer_;  // and on the device
  op::Tensor on_host_;
  op::Tensor on_device_;
};

/// The addresses of the matrices of a strided batch whose first lies at `first`.
std::vector<std::uint64_t> addresses_of(const op::Tensor& strided, std::uint64_t first);

/// The red zone for an output in bytes: large enough that an excess tile is written into it.
std::size_t output_red_zone(const op::Tensor& output);

}  // namespace tilewright::tune
