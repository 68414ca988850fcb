// The memory of one problem: several sets of random operands, so that no call finds its operands in L2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "tilewright/runtime/device.hpp"
#include "verify.hpp"

namespace tilewright::bench {

/// Blocks of random elements on the device, two for each element type that was used.
class RandomBlocks {
 public:
  /// Factors that are multiplied with each other come from different blocks. A column of B that repeats a row of A
  /// would have a product of k, far beyond the sums of independent elements that the error bounds are for.
  enum class Source : std::uint8_t { first, second };

  RandomBlocks(std::shared_ptr<runtime::Device> device, std::uint64_t seed);
  /// Fills the buffer with repeated copies of a block of the type, starting at an element of it that `offsets` draws.
  void fill(const runtime::DeviceBuffer& buffer, DType dtype, Source source, std::mt19937_64& offsets);

 private:
  /// The elements on the host and on the device. A GPU copies its own, the emulator those of the host.
  struct Block {
    std::vector<std::byte> host;
    runtime::DeviceBuffer device;
  };

  const Block& block(DType dtype, Source source);
  void copy(std::uint64_t to, const Block& from, std::size_t offset, std::size_t bytes) const;

  std::shared_ptr<runtime::Device> device_;
  std::uint64_t seed_;
  std::map<std::pair<DType, Source>, Block> blocks_;
};

class OperandSets {
 public:
  /// Random floats are from N(0,1), random integers from the whole range of the type. A tensor whose CaseTensor gives a
  /// value has that value. D and the epilogue's outputs are NaN. All sets together have more than three times the size
  /// of the L2 cache, unless `most` sets are less. `seed` chooses the places in `random` where the operands begin.
  /// @throws OutOfMemory
  OperandSets(std::shared_ptr<runtime::Device> device, const Problem& problem, RandomBlocks& random, std::uint64_t seed,
              int most = std::numeric_limits<int>::max());

  /// Bytes of device memory per set.
  std::size_t bytes() const { return bytes_of_set_; }
  int count() const { return static_cast<int>(sets_.size()); }
  const Addresses& addresses(int set) const { return sets_[static_cast<std::size_t>(set)].addresses; }

  /// Copies to the host what a call on the set reads.
  Sources read_sources(int set) const;
  /// Copies to the host what a call on the set wrote.
  Output read_output(int set) const;
  /// Copies to the host what a call of plain(problem) on the set wrote.
  Output read_plain(int set) const;
  /// Fills D, the separate product and the epilogue's outputs with NaN (integers with -1), so that elements which a
  /// kernel does not write are found. Reductions are filled with bytes 0x7f (as f32: 3.4e38), so that a maximum that
  /// was not cleared is found too.
  void poison_output(int set) const;
  /// Whether a call has written behind the last element of D since poison_output(). D is followed by a red zone.
  bool has_overrun(int set) const;

 private:
  /// The memory of one set. Buffers that the problem does not need are empty.
  struct Set {
    runtime::DeviceBuffer a, b, c, d, product;
    std::vector<runtime::DeviceBuffer> tensors;  // in the order of stored_tensors()
    Addresses addresses;
  };

  /// Fills a buffer with random elements of a type.
  using Fill = std::function<void(const runtime::DeviceBuffer& buffer, DType dtype, RandomBlocks::Source source)>;

  Set make_set(const Problem& problem, const Fill& fill) const;
  runtime::DeviceBuffer make_tensor(const StoredTensor& tensor, const Fill& fill) const;
  std::vector<std::byte> read(const runtime::DeviceBuffer& buffer) const;
  std::vector<std::byte> read(const runtime::DeviceBuffer& buffer, std::size_t begin, std::size_t bytes) const;
  void poison(const runtime::DeviceBuffer& buffer, std::uint8_t byte) const;

  std::shared_ptr<runtime::Device> device_;
  std::vector<StoredTensor> tensors_;
  std::size_t bytes_of_set_ = 0, bytes_of_d_ = 0;  // without the red zone behind D
  std::vector<Set> sets_;
};

}  // namespace tilewright::bench
