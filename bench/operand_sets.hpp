// The memory of one problem: several sets of operands with random contents, so that no call finds its own in L2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arguments.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::bench {

class OperandSets {
 public:
  /// Floats are N(0,1), integers cover their whole range; D holds NaN. Going round all sets touches more than three
  /// times the L2 cache. @throws OutOfMemory
  OperandSets(std::shared_ptr<runtime::CudaDevice> device, const Problem& problem, std::uint64_t seed);

  int count() const { return static_cast<int>(sets_.size()); }
  Addresses addresses(int set) const;

  std::vector<std::byte> read_a(int set) const { return read(sets_[static_cast<std::size_t>(set)].a); }
  std::vector<std::byte> read_b(int set) const { return read(sets_[static_cast<std::size_t>(set)].b); }
  std::vector<std::byte> read_d(int set) const { return read(sets_[static_cast<std::size_t>(set)].d); }
  /// Fills D with NaN (integers: -1), so that what a kernel leaves out shows.
  void spoil_d(int set) const;

 private:
  struct Set {
    runtime::DeviceBuffer a, b, d;
  };

  void fill(const runtime::DeviceBuffer& buffer, const runtime::DeviceBuffer& random, std::size_t offset) const;
  std::vector<std::byte> read(const runtime::DeviceBuffer& buffer) const;

  std::shared_ptr<runtime::CudaDevice> device_;
  std::vector<Set> sets_;
};

}  // namespace tilewright::bench
