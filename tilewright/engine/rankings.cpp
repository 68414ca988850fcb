#include "tilewright/engine/rankings.hpp"

namespace tilewright::engine {

Rankings::Ranking Rankings::find(const RankingKey& key, std::uint64_t registry_version) {
  const std::scoped_lock lock(mutex_);
  move_to(registry_version);
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : found->second;
}

void Rankings::insert(const RankingKey& key, std::uint64_t registry_version, const Ranking& ranking) {
  const std::scoped_lock lock(mutex_);
  if (registry_version < version_) return;  // of providers that are gone
  move_to(registry_version);
  if (known_.size() >= kMost) known_.clear();
  known_.insert_or_assign(key, ranking);
}

void Rankings::clear() {
  const std::scoped_lock lock(mutex_);
  known_.clear();
}

void Rankings::move_to(std::uint64_t registry_version) {
  if (registry_version <= version_) return;
  known_.clear();
  version_ = registry_version;
}

}  // namespace tilewright::engine
