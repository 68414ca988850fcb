// What earlier queries found, so that asking again about the same kind of call costs a look-up.
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
  bool operator==(const RankingKey&) const = default;
};

/// Of the kernels that are shipped: whether they fit follows from the kind of call, and authors' may ask for more.
/// Bounded and thread-safe.
class Rankings {
 public:
  using Ranking = std::shared_ptr<const Explanation>;

  /// `most`: how many are kept; the least recently used go.
  explicit Rankings(std::int64_t most) : known_(most) {}

  /// Null where it is not known.
  Ranking find(const RankingKey& key);
  /// Nothing where choices have changed since `generation`.
  void insert(const RankingKey& key, const Ranking& ranking, std::uint64_t generation);
  /// When choices changed.
  void clear();
  /// How often they did.
  std::uint64_t generation() const { return generation_; }

 private:
  struct KeyHash {
    std::size_t operator()(const RankingKey& key) const {
      return op::ProblemKeyHash()(key.call) * 31 + static_cast<std::size_t>(key.target.sm);
    }
  };
  std::atomic<std::uint64_t> generation_ = 0;
  ForkSafeMutex mutex_;  // guards what follows, and changes of the generation
  LruMap<RankingKey, Ranking, KeyHash> known_;
};

}  // namespace tilewright::engine
