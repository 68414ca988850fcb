// The bytes of allocations that no one has written, from one launch to the next.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tilewright::emulator {

/// A set of addresses, as ranges [begin, end). Not thread-safe.
class UnwrittenBytes {
 public:
  using Range = std::pair<std::uint64_t, std::uint64_t>;

  bool empty() const { return ends_.empty(); }
  void clear() { ends_.clear(); }
  void add(std::uint64_t begin, std::uint64_t end);
  /// The bytes were written, or their allocation is gone.
  void remove(std::uint64_t begin, std::uint64_t end);
  /// The parts of [begin, end) that are in the set, by address.
  std::vector<Range> within(std::uint64_t begin, std::uint64_t end) const;

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by begin; the ranges do not touch
};

}  // namespace tilewright::emulator
