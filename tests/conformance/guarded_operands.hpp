// A problem's operands in device memory, each between red zones that detect accesses outside the operand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/op/gemm.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::conformance {

/// One operand: its image in host memory, where all bytes outside the elements are poison (0xff: NaN), and its copy on
/// the device. The matrices of a pointer array lie in scattered order with gaps between them, at multiples of the
/// declared alignment that are not all multiples of twice as much.
class GuardedOperand {
 public:
  /// `offset_elements` shifts the first matrix from the allocation's alignment. `red_zone` bytes lie before the first
  /// matrix and after the last one; they must be a multiple of 256, the alignment of the memory pool.
  GuardedOperand(const std::shared_ptr<runtime::Device>& device, const op::Tensor& shape, int offset_elements,
                 std::size_t red_zone);

  const op::Tensor& host() const { return host_; }
  const op::Tensor& on_device() const { return on_device_; }
  const std::vector<std::byte>& image() const { return image_; }

  void upload() const;
  void download();

  /// Empty if all bytes outside the elements are still poison; otherwise the position of the first one that is not.
  std::string damage() const;

 private:
  /// The offset of a matrix of the batch in the image, in bytes.
  std::size_t begin(std::int64_t index) const;

  std::shared_ptr<runtime::Device> device_;
  std::size_t begin_ = 0;  // offset of the first matrix in memory in the image, in bytes
  std::size_t step_ = 0;   // bytes from one matrix in memory to the next; 0 for a broadcast or single matrix
  std::vector<std::byte> image_;
  runtime::DeviceBuffer buffer_;
  std::vector<std::uint64_t> host_pointers_, device_pointers_;  // the arrays of a pointer array
  runtime::DeviceBuffer pointer_buffer_;
  op::Tensor host_;
  op::Tensor on_device_;
};

/// The placement of an operand in memory.
struct Placement {
  int padding = 0;             // elements added to every leading dimension
  int batch_padding = 0;       // elements added between the matrices of a batch
  int offset_elements = 0;     // distance from an aligned address
  std::size_t red_zone = 512;  // bytes before and after; 0: a read past the last element leaves the allocation
};

/// A placement for each operand.
struct Placements {
  explicit Placements(const Placement& all) : a(all), b(all), c(all), d(all), tensors(all) {}

  Placement a, b, c, d;
  Placement tensors = {};  // of the epilogue's tensors
};

class GuardedProblem {
 public:
  /// `shape` gives extents, types, layouts, math and epilogue; its addresses are ignored.
  GuardedProblem(const std::shared_ptr<runtime::Device>& device, const op::Gemm& shape, const Placement& placement)
      : GuardedProblem(device, shape, Placements(placement)) {}
  GuardedProblem(const std::shared_ptr<runtime::Device>& device, const op::Gemm& shape, const Placements& placements);

  /// The problem on host memory, to fill and compare, and on device memory, to run.
  const op::Gemm& host() const { return host_; }
  const op::Gemm& on_device() const { return on_device_; }

  /// Copies the inputs and a poisoned D to the device.
  void upload();
  /// Copies all operands back to host memory.
  void download();
  /// Empty, or a message that names the operand which was written outside its elements or the input which was changed.
  std::string damage() const;

 private:
  struct Role {
    std::string name;
    const GuardedOperand* operand;
    bool is_output;
  };
  std::vector<Role> operands() const;

  GuardedOperand a_, b_, c_, d_;
  std::vector<GuardedOperand> tensors_;  // in the order of op::Gemm::tensors
  op::Gemm host_;
  op::Gemm on_device_;
  std::vector<std::byte> inputs_before_;
  std::vector<std::byte> inputs() const;
};

}  // namespace tilewright::conformance
