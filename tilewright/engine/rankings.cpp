#include "tilewright/engine/rankings.hpp"

namespace tilewright::engine {

Rankings::Ranking Rankings::find(const RankingKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : found->second;
}

void Rankings::insert(const RankingKey& key, const Ranking& ranking, std::uint64_t generation) {
  const std::scoped_lock lock(mutex_);
  if (generation != generation_) return;
  if (known_.size() >= kMost) known_.clear();
  known_.insert_or_assign(key, ranking);
}

void Rankings::clear() {
  const std::scoped_lock lock(mutex_);
  ++generation_;
  known_.clear();
}

}  // namespace tilewright::engine
