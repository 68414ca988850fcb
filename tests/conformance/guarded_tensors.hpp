// A convolution or contraction on tensors between red zones, compared with its definition.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/guarded_operands.hpp"
#include "tilewright/op/contraction.hpp"
#include "tilewright/op/conv2d.hpp"

namespace tilewright::conformance {

/// Problem is op::Conv2d or op::Contraction. Elements between the tensors' elements, if their strides leave gaps, are
/// poison as those outside.
template <class Problem>
class GuardedTensors {
 public:
  GuardedTensors(const std::shared_ptr<runtime::Device>& device, const Problem& shape, const Placement& placement = {});

  const Problem& host() const { return host_; }
  const Problem& on_device() const { return on_device_; }

  /// Fills the inputs with integers whose sums are exact, and copies them and a poisoned output to the device.
  void upload();
  void download();
  /// Empty, or a message that names an operand which was written outside its elements, or an element of the output that
  /// is not alpha times the sum of the definition plus beta times C.
  std::string wrong() const;

 private:
  std::vector<std::string> names_;
  std::vector<GuardedOperand> operands_;  // as single rows, in the order of op::operands()
  Problem host_, on_device_;
};

}  // namespace tilewright::conformance
