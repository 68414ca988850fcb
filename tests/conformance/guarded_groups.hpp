// A grouped GEMM on operands between red zones. What belongs to no group is poison, too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/guarded_operands.hpp"
#include "tilewright/op/grouped_gemm.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::conformance {

/// A grouped problem with placeholder addresses. `capacity` is a GEMM of single matrices with the extents of one group
/// at the capacity, and m, n or k that of all groups in a ragged mode.
op::GroupedGemm grouped_of(const op::Gemm& capacity, op::GroupedMode mode, std::int64_t groups);

class GuardedGroups {
 public:
  GuardedGroups(const std::shared_ptr<runtime::Device>& device, const op::GroupedGemm& shape,
                std::vector<std::int32_t> ends, const Placement& placement);

  /// The problem on host memory, to compare, and on device memory, to run.
  op::GroupedGemm host() const;
  op::GroupedGemm on_device() const;

  /// Exchanges the ends, whose number stays the same, in host and device memory.
  void set_ends(const std::vector<std::int32_t>& ends);
  /// Fills the inputs with integers whose sums are exact, and what belongs to no group with poison, and copies them and
  /// a poisoned D to the device.
  void upload();
  void download() { operands_.download(); }
  /// Empty, or a message that names what was written outside the groups' elements.
  std::string damage() const;

 private:
  op::GroupedGemm grouped(const op::Gemm& gemm, std::uint64_t ends, op::MemoryDevice device) const;

  std::shared_ptr<runtime::Device> device_;
  op::GroupedMode mode_;
  GuardedProblem operands_;
  std::vector<std::int32_t> ends_;
  runtime::DeviceBuffer ends_buffer_;
};

}  // namespace tilewright::conformance
