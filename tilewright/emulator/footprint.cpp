#include "tilewright/emulator/footprint.hpp"

#include <algorithm>

namespace tilewright::emulator {

void ByteRanges::normalise() {
  std::ranges::sort(ranges_);
  std::size_t kept = 0;
  for (const Range& range : ranges_) {
    if (kept != 0 && range.first <= ranges_[kept - 1].second) {
      ranges_[kept - 1].second = std::max(ranges_[kept - 1].second, range.second);
    } else {
      ranges_[kept++] = range;
    }
  }
  ranges_.resize(kept);
}

void ByteRanges::remove(std::uint64_t begin, std::uint64_t end) {
  auto at = std::ranges::upper_bound(ranges_, begin, {}, &Range::second);
  if (at != ranges_.end() && at->first < begin) {
    const std::uint64_t old_end = std::exchange(at->second, begin);
    at = ranges_.insert(at + 1, Range{begin, old_end});
  }
  auto last = at;
  while (last != ranges_.end() && last->second <= end) ++last;
  if (last != ranges_.end()) last->first = std::max(last->first, std::min(end, last->second));
  ranges_.erase(at, last);
}

void ByteRanges::add(const ByteRanges& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

bool ByteRanges::contains(const ByteRanges& other) const {
  auto at = ranges_.begin();
  return std::ranges::all_of(other.ranges_, [&](const Range& range) {
    while (at != ranges_.end() && at->second <= range.first) ++at;
    return at != ranges_.end() && at->first <= range.first && range.second <= at->second;
  });
}

std::optional<ByteRanges::Range> ByteRanges::first_common(const ByteRanges& other) const {
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    // Most ranges of the larger set are before the next one of the smaller set.
    if (a->second <= b->first) {
      a = std::upper_bound(a, ranges_.end(), b->first,
                           [](std::uint64_t at, const Range& range) { return at < range.second; });
    } else if (b->second <= a->first) {
      b = std::upper_bound(b, other.ranges_.end(), a->first,
                           [](std::uint64_t at, const Range& range) { return at < range.second; });
    } else {
      return Range{std::max(a->first, b->first), std::min(a->second, b->second)};
    }
  }
  return std::nullopt;
}

void Footprint::normalise() {
  for (ByteRanges* const ranges : {&reads, &writes, &updates}) ranges->normalise();
}

void Footprint::remove(std::uint64_t begin, std::uint64_t end) {
  for (ByteRanges* const ranges : {&reads, &writes, &updates}) ranges->remove(begin, end);
}

}  // namespace tilewright::emulator
