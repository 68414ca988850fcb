#include "tilewright/engine/rankings.hpp"

#include <vector>

namespace tilewright::engine {

Rankings::Ranking Rankings::find(const RankingKey& key) {
  const std::scoped_lock lock(mutex_);
  const Ranking* const found = known_.find(key);
  return found == nullptr ? nullptr : *found;
}

// What goes is destroyed after the lock is released: authors' code may run then.
void Rankings::insert(const RankingKey& key, const Ranking& ranking, std::uint64_t generation) {
  std::vector<Ranking> gone;
  const std::scoped_lock lock(mutex_);
  if (generation == generation_) gone = known_.insert(key, ranking);
}

void Rankings::clear() {
  std::vector<Ranking> gone;
  const std::scoped_lock lock(mutex_);
  ++generation_;
  gone = known_.clear();
}

}  // namespace tilewright::engine
