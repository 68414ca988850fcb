// A tensor in device memory of its own, between red zones, and its image on the host: what is written beside its
// elements shows.
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

inline constexpr std::size_t kPlacedAlignment = 256;  // addresses of copies agree with the caller's modulo this

class PlacedTensor {
 public:
  /// Extents, type and strides of `shape`, and its address modulo kPlacedAlignment. The image is NaN everywhere, in the
  /// elements and `red_zone` bytes before and after, a multiple of kPlacedAlignment. @throws OutOfMemory
  PlacedTensor(std::string label, std::shared_ptr<runtime::Device> device, const op::Tensor& shape,
               std::size_t red_zone);

  const std::string& label() const { return label_; }
  const op::Tensor& on_host() const { return on_host_; }  // within the image
  const op::Tensor& on_device() const { return on_device_; }
  /// Elements and red zones.
  std::span<const std::byte> image() const { return image_; }

  /// Image to device, and back; enqueued on the null stream.
  void upload() const;
  void fetch();
  /// Fills elements and red zones on the device with a pattern; enqueued.
  void spoil() const;
  /// Whether the device holds what the image does; waits.
  bool is_intact() const;

  /// After spoil() and fetch(): empty, or which byte that belongs to no element was written. @pre the tensor's
  /// elements do not overlap
  std::string find_stray_write() const;
  /// After fetch(): elements whose bits are not those of `expected`, another image of such a tensor; the first million
  /// in the order of memory. @pre as find_stray_write
  std::vector<op::Place> differing_elements(std::span<const std::byte> expected) const;

 private:
  std::string label_;
  std::shared_ptr<runtime::Device> device_;
  std::size_t begin_;                    // of the first element in image and buffer
  std::unique_ptr<std::byte[]> memory_;  // no vector: that would fill it where nothing can interrupt
  std::span<std::byte> image_;           // red zone, elements, red zone
  runtime::DeviceBuffer buffer_;
  op::Tensor on_host_;
  op::Tensor on_device_;
};

/// Bytes around what a kernel writes: where a tile too many would go.
std::size_t output_red_zone(const op::Tensor& output);

}  // namespace tilewright::tune
