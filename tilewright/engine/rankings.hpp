// What earlier queries found, so that asking again about the same kind of call costs a look-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tilewright/engine/call_key.hpp"
#include "tilewright/engine/explanation.hpp"

namespace tilewright::engine {

struct RankingKey {
  CallKey call;
  Target target;
  bool operator==(const RankingKey&) const = default;
};

/// Bounded and thread-safe. All is forgotten when the registry's version moves on, or clear() says that choices did.
class Rankings {
 public:
  using Ranking = std::shared_ptr<const Explanation>;

  /// Null where it is not known.
  Ranking find(const RankingKey& key, std::uint64_t registry_version);
  void insert(const RankingKey& key, std::uint64_t registry_version, const Ranking& ranking);
  void clear();

 private:
  struct KeyHash {
    std::size_t operator()(const RankingKey& key) const {
      return CallKeyHash()(key.call) * 31 + static_cast<std::size_t>(key.target.sm);
    }
  };
  void move_to(std::uint64_t registry_version);

  static constexpr std::size_t kMost = 1024;  // a ranking takes some 20 KB

  std::mutex mutex_;  // guards what follows
  std::uint64_t version_ = 0;
  std::unordered_map<RankingKey, Ranking, KeyHash> known_;
};

}  // namespace tilewright::engine
