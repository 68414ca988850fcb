// A table of recent objects, which are found by a hash and a comparison.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "tilewright/base/fork.hpp"

namespace tilewright::engine {

/// At most kSets * kWays objects. A new one replaces the oldest of its set. Thread-safe.
template <class T>
class RecentTable {
 public:
  /// Null if no object with this hash matches.
  template <class Matches>
  std::shared_ptr<const T> find(std::size_t hash, const Matches& matches) const {
    const std::scoped_lock lock(mutex_);
    for (const std::shared_ptr<const T>& each : sets_[hash % kSets]) {
      if (each != nullptr && matches(*each)) return each;
    }
    return nullptr;
  }

  void insert(std::size_t hash, std::shared_ptr<const T> object) {
    Set& set = sets_[hash % kSets];
    const std::scoped_lock lock(mutex_);
    for (std::shared_ptr<const T>& each : set) std::swap(each, object);
    // The oldest object is now `object`, which is destroyed after the lock is released.
  }

 private:
  static constexpr std::size_t kSets = 256, kWays = 4;
  using Set = std::array<std::shared_ptr<const T>, kWays>;

  mutable ForkSafeMutex mutex_;  // guards sets_
  std::array<Set, kSets> sets_;
};

}  // namespace tilewright::engine
