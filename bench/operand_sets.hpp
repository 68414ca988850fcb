// The memory of one problem: several sets of operands with random contents, so that no call finds its own in L2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "arguments.hpp"
#include "tilewright/runtime/cuda_device.hpp"
#include "verify.hpp"

namespace tilewright::bench {

class OperandSets {
 public:
  /// Floats are N(0,1), integers cover their whole range, but a tensor whose row says a value has that; D and what the
  /// epilogue writes besides hold NaN. Going round all sets touches more than three times the L2 cache.
  /// @throws OutOfMemory
  OperandSets(std::shared_ptr<runtime::CudaDevice> device, const Problem& problem, std::uint64_t seed);

  int count() const { return static_cast<int>(sets_.size()); }
  const Addresses& addresses(int set) const { return sets_[static_cast<std::size_t>(set)].addresses; }

  /// What a call on the set reads.
  Sources read_sources(int set) const;
  /// What it left.
  Output read_output(int set) const;
  /// What a call of plain(problem) left.
  Output read_plain(int set) const;
  /// Fills D, the product beside it and the epilogue's outputs with NaN (integers: -1), so that what a kernel leaves
  /// out shows; those that are reduced with bytes 0x7f, as an f32 3.4e38, so that it shows too where a maximum is not
  /// cleared first.
  void spoil_output(int set) const;

 private:
  /// Memory of one set. Empty where the problem has none of it.
  struct Set {
    runtime::DeviceBuffer a, b, c, d, product;
    std::vector<runtime::DeviceBuffer> tensors;  // of stored_tensors()
    Addresses addresses;
  };

  /// Random elements on the device, a block for each type that is asked for.
  class RandomBlocks {
   public:
    RandomBlocks(std::shared_ptr<runtime::CudaDevice> device, std::uint64_t seed);
    /// Fills the buffer with the type's block, over and over, from a random place of it on.
    void fill(const runtime::DeviceBuffer& buffer, DType dtype);

   private:
    const runtime::DeviceBuffer& block(DType dtype);

    std::shared_ptr<runtime::CudaDevice> device_;
    std::uint64_t seed_;
    std::mt19937_64 offsets_;
    std::map<DType, runtime::DeviceBuffer> blocks_;
  };

  Set make_set(const Problem& problem, RandomBlocks& random) const;
  runtime::DeviceBuffer make_tensor(const StoredTensor& tensor, RandomBlocks& random) const;
  std::vector<std::byte> read(const runtime::DeviceBuffer& buffer) const;
  void spoil(const runtime::DeviceBuffer& buffer, std::uint8_t byte) const;

  std::shared_ptr<runtime::CudaDevice> device_;
  std::vector<StoredTensor> tensors_;
  std::vector<Set> sets_;
};

}  // namespace tilewright::bench
