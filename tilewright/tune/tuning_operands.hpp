// Memory that candidates may do with as they like: operands of a problem's shapes, types, strides and alignments, and
// the tensors of its epilogue, with contents of our own, so that the caller's are never touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/op/problem.hpp"
#include "tilewright/runtime/device.hpp"
#include "tilewright/tune/placed_tensor.hpp"

namespace tilewright::tune {

/// A problem's outputs as images of memory with the red zones.
using OutputImages = std::vector<std::vector<std::byte>>;

/// Inputs are small integers whose sums every accumulator holds exactly: all correct kernels add to the same bits. What
/// the epilogue reads is as small; where it rounds, bits may differ, and such elements are compared with the oracle.
class TuningOperands {
 public:
  /// `shape`: extents, types, strides; of its addresses only what they are modulo 256 bytes.
  /// @pre op::measurable(shape) @throws OutOfMemory, InvalidArgument for an operand that is read and written
  TuningOperands(const std::shared_ptr<runtime::Device>& device, const op::Problem& shape);

  /// The problem to check a kernel on: outputs lie between red zones, and NaN lies around the inputs.
  const op::Problem& on_device() const { return on_device_; }
  /// The same on the host; outputs as fetch_outputs() brought them.
  const op::Problem& on_host() const { return on_host_; }

  /// Fills the outputs and their red zones with a pattern; waits.
  void spoil_outputs();
  /// Brings the outputs and their red zones to the host; waits.
  void fetch_outputs();
  /// After fetch_outputs(): empty, or where a byte that belongs to no element of an output was written.
  std::string find_stray_write() const;
  /// Whether the inputs on the device are still what they were.
  bool inputs_are_intact() const;
  void restore_inputs();

  /// The outputs' memory, as fetched.
  OutputImages output_images() const;
  /// After fetch_outputs(): empty, or what is wrong with an output. An author's operation is compared whole with its
  /// reference, or where it has none, with `expected` within Operation::tolerance(). Of problems that are seen as a
  /// GEMM: elements that have the bits of `expected`, the output_images() of a kernel found right, or nothing, are
  /// right; of the others, up to some hundreds of each output are compared with the host's oracle, but of reductions
  /// two results, and what all of D is reduced to only below 2^24 products.
  std::string find_wrong_element(const OutputImages& expected) const;

 private:
  std::string find_wrong_of_view(const op::GemmView& view, const OutputImages& expected) const;

  std::shared_ptr<runtime::Device> device_;
  op::Problem on_host_;
  op::Problem on_device_;
  std::vector<PlacedTensor> inputs_;
  std::vector<PlacedTensor> outputs_;  // D first where there is one
};

/// Copies of a problem's operands to time calls on: so many that going round them touches three times the L2 cache, and
/// no call finds its operands there.
class TimingSets {
 public:
  /// @throws OutOfMemory
  TimingSets(const std::shared_ptr<runtime::Device>& device, const TuningOperands& operands);

  /// The next set, going round.
  const op::Problem& next();
  std::size_t count() const { return sets_.size(); }

 private:
  runtime::DeviceBuffer memory_;
  std::vector<op::Problem> sets_;
  std::size_t next_ = 0;
};

}  // namespace tilewright::tune
