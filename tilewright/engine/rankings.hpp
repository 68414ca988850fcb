// An LRU cache of rankings by call key, target, tuning mode and required promises.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tilewright/base/fork.hpp"
#include "tilewright/base/lru_map.hpp"
#include "tilewright/engine/explanation.hpp"
#include "tilewright/engine/options.hpp"
#include "tilewright/op/problem.hpp"

namespace tilewright::engine {

struct RankingKey {
  op::ProblemKey call;
  Target target;
  Tuning tuning = Tuning::use;
  registry::Promises required = {};
  bool operator==(const RankingKey&) const = default;
};

/// Holds rankings of shipped kernels only: their support checks depend only on the key, which is not so for
/// user-defined kernels. Thread-safe.
class Rankings {
 public:
  using Ranking = std::shared_ptr<const Explanation>;

  explicit Rankings(std::int64_t capacity) : known_(capacity) {}

  /// Null if the key is not in the cache.
  Ranking find(const RankingKey& key);
  /// Does nothing if clear() was called since `generation` was read.
  void insert(const RankingKey& key, const Ranking& ranking, std::uint64_t generation);
  /// Must be called when tuned choices change.
  void clear();
  /// The number of calls of clear().
  std::uint64_t generation() const { return generation_; }

 private:
  struct KeyHash {
    std::size_t operator()(const RankingKey& key) const {
      return op::ProblemKeyHash()(key.call) * 31 + static_cast<std::size_t>(key.target.sm);
    }
  };
  std::atomic<std::uint64_t> generation_ = 0;
  ForkSafeMutex mutex_;  // guards known_ and changes of generation_
  LruMap<RankingKey, Ranking, KeyHash> known_;
};

}  // namespace tilewright::engine
