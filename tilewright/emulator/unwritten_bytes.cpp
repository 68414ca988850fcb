#include "tilewright/emulator/unwritten_bytes.hpp"

#include <algorithm>
#include <iterator>

namespace tilewright::emulator {

void UnwrittenBytes::add(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  auto next = ends_.lower_bound(begin);
  if (next != ends_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != ends_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ends_.erase(next);
  }
  ends_.emplace(begin, end);
}

void UnwrittenBytes::remove(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  auto next = ends_.lower_bound(begin);
  if (next != ends_.begin() && std::prev(next)->second > begin) {
    const std::uint64_t last = std::exchange(std::prev(next)->second, begin);
    if (last > end) {
      ends_.emplace(end, last);
      return;
    }
  }
  while (next != ends_.end() && next->first < end) {
    const std::uint64_t last = next->second;
    next = ends_.erase(next);
    if (last > end) {
      ends_.emplace(end, last);
      return;
    }
  }
}

std::vector<UnwrittenBytes::Range> UnwrittenBytes::within(std::uint64_t begin, std::uint64_t end) const {
  std::vector<Range> found;
  auto next = ends_.upper_bound(begin);
  if (next != ends_.begin()) --next;
  for (; next != ends_.end() && next->first < end; ++next) {
    const Range part{std::max(begin, next->first), std::min(end, next->second)};
    if (part.first < part.second) found.push_back(part);
  }
  return found;
}

}  // namespace tilewright::emulator
