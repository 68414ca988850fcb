// A problem's operands in device memory, each between red zones, so that a stray write or read shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/op/gemm.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::conformance {

/// One operand: its host image with everything around the elements poisoned (0xff: NaN), and its place on the device.
class GuardedOperand {
 public:
  /// `offset_elements` shifts the matrix off the allocation's alignment; `red_zone` bytes lie before and after, a
  /// multiple of the pool's alignment of 256.
  GuardedOperand(const std::shared_ptr<runtime::Device>& device, const op::Tensor& shape, int offset_elements,
                 std::size_t red_zone);

  const op::Tensor& host() const { return host_; }
  const op::Tensor& on_device() const { return on_device_; }

  void upload() const;
  void download();

  /// Empty when every byte that belongs to no element is still poison; else where the first one is that is not.
  std::string damage() const;

 private:
  std::shared_ptr<runtime::Device> device_;
  std::vector<std::byte> image_;
  runtime::DeviceBuffer buffer_;
  op::Tensor host_;
  op::Tensor on_device_;
  std::size_t begin_ = 0;  // of the first element, in bytes from the image's start
};

/// Where an operand lies.
struct Placement {
  int padding = 0;             // elements added to every leading dimension
  int batch_padding = 0;       // and between the matrices of a batch
  int offset_elements = 0;     // from an aligned address
  std::size_t red_zone = 512;  // bytes before and after; 0: a read past the last element leaves the allocation
};

/// Of each operand its own.
struct Placements {
  explicit Placements(const Placement& all) : a(all), b(all), c(all), d(all), tensors(all) {}

  Placement a, b, c, d;
  Placement tensors = {};  // the epilogue's
};

class GuardedProblem {
 public:
  /// `shape` tells extents, types, layouts, math and epilogue; its addresses are ignored.
  GuardedProblem(const std::shared_ptr<runtime::Device>& device, const op::Gemm& shape, const Placement& placement)
      : GuardedProblem(device, shape, Placements(placement)) {}
  GuardedProblem(const std::shared_ptr<runtime::Device>& device, const op::Gemm& shape, const Placements& placements);

  /// Over host memory, to fill and compare; over device memory, to run.
  const op::Gemm& host() const { return host_; }
  const op::Gemm& on_device() const { return on_device_; }

  /// Copies A, B and C in, and a D of poison.
  void upload();
  /// Copies everything back.
  void download();
  /// Empty, or which operand was written outside its elements, or which input changed.
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
