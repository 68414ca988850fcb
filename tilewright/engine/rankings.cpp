#include "tilewright/engine/rankings.hpp"

#include <vector>

namespace tilewright::engine {

Rankings::Ranking Rankings::find(const RankingKey& key) {
  const std::scoped_lock lock(mutex_);
  const Ranking* const found = known_.find(key);
  return found == nullptr ? nullptr : *found;
}

// Evicted rankings are destroyed after the lock is released, since user destructors may run.
void Rankings::insert(const RankingKey& key, const Ranking& ranking, std::uint64_t generation) {
  std::vector<Ranking> evicted;
  const std::scoped_lock lock(mutex_);
  if (generation == generation_) evicted = known_.insert(key, ranking);
}

void Rankings::clear() {
  std::vector<Ranking> evicted;
  const std::scoped_lock lock(mutex_);
  ++generation_;
  evicted = known_.clear();
}

}  // namespace tilewright::engine
