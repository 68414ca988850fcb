// Copies of a problem's operands, with the same shapes, types, strides and alignments, on which candidates are checked
// and timed. The caller's memory is never accessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/op/problem.hpp"
#include "tilewright/runtime/device.hpp"
#include "tilewright/tune/guarded_tensor.hpp"

namespace tilewright::tune {

/// Memory images of a problem's outputs, including the red zones.
using OutputImages = std::vector<std::vector<std::byte>>;

/// Operands for checking. Inputs are small integers whose sums are exact in the accumulator, so that all correct
/// kernels compute the same bits up to the epilogue. If the epilogue rounds, bits may differ; elements that differ are
/// compared with op::reference.
class TuningOperands {
 public:
  /// Uses the extents, types and strides of `shape`, its addresses modulo 256 bytes, and the sizes of its groups.
  /// @pre op::measurable(shape) @throws OutOfMemory, InvalidArgument for an operand that is read and written
  TuningOperands(const std::shared_ptr<runtime::Device>& device, const op::Problem& shape);

  /// The problem on the device. Outputs have red zones around them, and inputs have NaN around them.
  const op::Problem& on_device() const { return on_device_; }
  /// The problem on the host. fetch_outputs() updates its outputs.
  const op::Problem& on_host() const { return on_host_; }
  /// The memory on the host of the operands that the call uses, in the order of op::operands(); a pointer array as the
  /// strided batch to which its addresses point.
  const std::vector<op::Tensor>& host_memory() const { return host_memory_; }

  /// Fills the outputs and their red zones on the device with a poison pattern; waits.
  void poison_outputs();
  /// Copies the outputs and their red zones to the host; waits.
  void fetch_outputs();
  /// After fetch_outputs(): describes the first byte written outside the elements of an output; empty if there is none.
  std::string find_out_of_bounds_write() const;
  /// Whether the inputs on the device are unchanged.
  bool inputs_are_intact() const;
  void restore_inputs();

  /// Copies of the outputs as fetched.
  OutputImages output_images() const;
  /// After fetch_outputs(): describes a wrong element of an output; empty if none was found. `expected` has the
  /// output_images() of a correct kernel, or is empty.
  /// - GEMMs: elements whose bits equal those in `expected` are accepted. Samples of the others (all, if `expected` is
  ///   empty) are compared with op::reference: up to 512 elements of each output, and two results of each reduction. A
  ///   reduction to a single result is compared only if the GEMM has at most 2^24 products.
  /// - Convolutions, contractions and grouped GEMMs: if any bit differs, what op::compare() samples is compared with op::reference.
  /// - Other operations: all elements are compared with the operation's reference or, if it has none, bit by bit with
  ///   `expected`.
  std::string find_wrong_element(const OutputImages& expected) const;

 private:
  std::string find_wrong_element_of_gemm(const op::GemmView& view, const OutputImages& expected) const;
  std::string find_wrong_sample(const op::GemmView& view, const OutputImages& expected) const;

  std::shared_ptr<runtime::Device> device_;
  op::Problem on_host_;
  op::Problem on_device_;
  std::vector<op::Tensor> host_memory_;
  std::vector<GuardedTensor> inputs_;
  std::vector<GuardedTensor> outputs_;  // D first, if the operation is a GEMM
};

/// Rotating copies of a problem's operands for timing. One rotation covers more than twice the L2 cache, so that no
/// call finds its operands in the cache.
class RotatingOperands {
 public:
  /// @throws OutOfMemory
  RotatingOperands(const std::shared_ptr<runtime::Device>& device, const TuningOperands& operands);

  /// The next copy in the rotation.
  const op::Problem& next();
  std::size_t count() const { return sets_.size(); }

 private:
  runtime::DeviceBuffer memory_;
  std::vector<op::Problem> sets_;
  std::size_t next_ = 0;
};

}  // namespace tilewright::tune
