// Which bytes of global memory a launch or a copy has accessed, for the detection of races between streams.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tilewright::emulator {

/// A set of addresses.
class ByteRanges {
 public:
  using Range = std::pair<std::uint64_t, std::uint64_t>;  // [begin, end)

  void add(std::uint64_t begin, std::uint64_t end) {
    if (!ranges_.empty() && ranges_.back().second == begin) {
      ranges_.back().second = end;
    } else if (begin < end) {
      ranges_.emplace_back(begin, end);
    }
  }
  void add(const ByteRanges& other);
  /// Sorts and merges what was added. The functions below need it.
  void normalise();
  void remove(std::uint64_t begin, std::uint64_t end);
  std::optional<Range> first_common(const ByteRanges& other) const;
  bool contains(const ByteRanges& other) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

struct Footprint {
  ByteRanges reads, writes;  // by plain and asynchronous accesses
  ByteRanges updates;        // by atomics and by other strong writes, which may be concurrent with each other

  void normalise();
  void remove(std::uint64_t begin, std::uint64_t end);
};

}  // namespace tilewright::emulator
