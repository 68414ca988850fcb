// Memory that candidates may do with as they like: operands of a problem's shapes, types, strides and alignments, with
// contents of our own, so that the caller's are never touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/op/gemm.hpp"
#include "tilewright/op/reference_gemm.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

/// Inputs are small integers whose sums every accumulator holds exactly: all correct kernels add to the same bits.
class TuningOperands {
 public:
  /// `shape`: extents, types, strides; of its addresses only what they are modulo 256 bytes.
  /// @pre op::validate(shape); no extent is 0 @throws OutOfMemory
  TuningOperands(std::shared_ptr<runtime::Device> device, const op::Gemm& shape);

  /// The problem to check a kernel on: D lies between red zones, and NaN lies around the inputs.
  const op::Gemm& on_device() const { return on_device_; }
  /// The same on the host; D as fetch() brought it.
  const op::Gemm& on_host() const { return on_host_; }

  /// Fills D and its red zones with a pattern; waits.
  void spoil_output();
  /// Brings D and its red zones to the host; waits.
  void fetch_output();
  /// After fetch_output(): empty, or where a byte that belongs to no element of D was written.
  std::string find_stray_write() const;
  /// Whether the inputs on the device are still what they were.
  bool inputs_are_intact();
  void restore_inputs();

  /// D's memory, red zones included, as fetched.
  std::span<const std::byte> output_image() const { return d_.image; }
  /// After fetch_output(): empty, or what is wrong with D. Elements that have the bits of `expected`, an output_image()
  /// of a kernel found right, or nothing, are right; of the others, up to some hundreds are compared with op::compare.
  std::string find_wrong_element(std::span<const std::byte> expected) const;

 private:
  struct Operand {
    std::vector<std::byte> image;  // red zone, elements, red zone
    runtime::DeviceBuffer buffer;
    std::size_t begin = 0;  // of the first element in image and buffer
  };

  Operand place(op::Tensor& host, op::Tensor& device, std::size_t red_zone);
  void fill(const op::Tensor& tensor, std::uint64_t seed) const;
  bool is_intact(const Operand& operand) const;
  std::vector<std::int64_t> differing_elements(std::span<const std::byte> expected) const;
  op::Comparison compare_element(std::int64_t row, std::int64_t column) const;

  std::shared_ptr<runtime::Device> device_;
  op::Gemm on_host_;
  op::Gemm on_device_;
  Operand a_, b_, c_, d_;
};

/// Copies of a problem's operands to time calls on: so many that going round them touches three times the L2 cache, and
/// no call finds its operands there.
class TimingSets {
 public:
  /// @throws OutOfMemory
  TimingSets(const std::shared_ptr<runtime::Device>& device, const TuningOperands& operands);

  /// The next set, going round.
  const op::Gemm& next();

 private:
  runtime::DeviceBuffer memory_;
  std::vector<op::Gemm> sets_;
  std::size_t next_ = 0;
};

}  // namespace tilewright::engine
