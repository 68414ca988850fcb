#include "tilewright/cache/store.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "tilewright/cache/disk.hpp"
#include "tilewright/cache/root.hpp"
#include "tilewright/compile/parallel.hpp"

namespace tilewright::cache {

Store::Store(const StoreOptions& options, const compile::Environment& environment) : options_(options) {
  if (!options.on_disk) return;
  const std::string root = choose_root(options.root, environment);
  if (root.empty()) {
    warn("no place for a cache on disk: set TILEWRIGHT_CACHE_DIR or HOME; kernels are kept in memory only");
    return;
  }
  Result<std::unique_ptr<Disk>> disk = Disk::open(root, options.max_bytes);
  if (disk) {
    disk_ = *std::move(disk);
  } else {
    warn(fmt::format("kernels are kept in memory only, the cache folder cannot be used: {}", disk.reason()));
  }
}

Store::~Store() = default;

ArtifactPtr Store::get_or_compile(const compile::Source& source, const compile::Compiler& compiler) {
  const Key key = make_key(source, compiler.identity());
  std::promise<ArtifactPtr> promise;
  std::shared_future<ArtifactPtr> others;
  {
    const std::lock_guard guard(mutex_);
    if (const auto found = memory_.find(key); found != memory_.end()) {
      ++counters_.memory_hits;
      return found->second;
    }
    const auto [flight, is_first] = in_flight_.try_emplace(key);
    if (is_first) {
      flight->second = promise.get_future().share();
    } else {
      others = flight->second;
    }
  }
  if (others.valid()) return others.get();

  const auto land = [&] {
    const std::lock_guard guard(mutex_);
    in_flight_.erase(key);
  };
  try {
    ArtifactPtr artifact = fetch_or_compile(key, source, compiler);
    remember(key, artifact);
    promise.set_value(artifact);
    land();
    return artifact;
  } catch (...) {
    promise.set_exception(std::current_exception());
    land();
    throw;
  }
}

ArtifactPtr Store::fetch_or_compile(const Key& key, const compile::Source& source, const compile::Compiler& compiler) {
  std::optional<Result<FileLock>> lock;
  if (disk_) {
    if (ArtifactPtr found = find_on_disk(key)) return found;
    lock = disk_->lock(key, options_.lock_timeout_s);
    if (ArtifactPtr found = find_on_disk(key)) return found;  // the holder before us made it
    if (!*lock) warn("compiling without a lock: " + lock->reason());
  }
  auto artifact = std::make_shared<const compile::Artifact>(compiler.compile(source));
  {
    const std::lock_guard guard(mutex_);
    ++counters_.compiles;
  }
  publish(key, *artifact);
  return artifact;
}

std::vector<ArtifactPtr> Store::get_or_compile_all(std::span<const compile::Source> sources,
                                                   const compile::Compiler& compiler, int threads,
                                                   const std::function<void(const compile::Artifact&)>& on_ready) {
  std::vector<ArtifactPtr> artifacts(sources.size());
  std::mutex telling;
  const auto tell = [&](const ArtifactPtr& artifact) {
    if (!on_ready) return;
    const std::scoped_lock lock(telling);
    on_ready(*artifact);
  };
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    artifacts[i] = find(make_key(sources[i], compiler.identity()));
    artifacts[i] ? tell(artifacts[i]) : missing.push_back(i);
  }
  compile::for_each_index(missing.size(), threads, [&](std::size_t index) {
    const std::size_t i = missing[index];
    artifacts[i] = get_or_compile(sources[i], compiler);
    tell(artifacts[i]);
  });
  return artifacts;
}

ArtifactPtr Store::find(const Key& key) {
  if (ArtifactPtr found = find_in_memory(key)) return found;
  ArtifactPtr found = find_on_disk(key);
  if (found) remember(key, found);
  return found;
}

void Store::insert(const Key& key, const ArtifactPtr& artifact) {
  remember(key, artifact);
  publish(key, *artifact);
}

ArtifactPtr Store::find_in_memory(const Key& key) {
  const std::lock_guard guard(mutex_);
  const auto found = memory_.find(key);
  if (found == memory_.end()) return nullptr;
  ++counters_.memory_hits;
  return found->second;
}

ArtifactPtr Store::find_on_disk(const Key& key) {
  if (!disk_) return nullptr;
  Lookup lookup = disk_->read(key);
  if (!lookup.problem.empty()) warn(std::move(lookup.problem));
  if (!lookup.artifact) return nullptr;
  const std::lock_guard guard(mutex_);
  ++counters_.disk_hits;
  return std::make_shared<const compile::Artifact>(*std::move(lookup.artifact));
}

void Store::remember(const Key& key, const ArtifactPtr& artifact) {
  const std::lock_guard guard(mutex_);
  memory_.insert_or_assign(key, artifact);
}

void Store::publish(const Key& key, const compile::Artifact& artifact) {
  if (!disk_) return;
  if (const Support kept = disk_->publish(key, artifact); !kept) warn(kept.reason());
}

// A full disk fails every publish in the same words, which are said once.
void Store::warn(std::string message) {
  constexpr std::size_t kMaxWarnings = 100;
  {
    const std::lock_guard guard(mutex_);
    if (std::find(warnings_.begin(), warnings_.end(), message) != warnings_.end()) return;
    if (warnings_.size() < kMaxWarnings) warnings_.push_back(message);
  }
  spdlog::warn("{}", message);
}

Counters Store::counters() const {
  const std::lock_guard guard(mutex_);
  return counters_;
}

std::vector<std::string> Store::warnings() const {
  const std::lock_guard guard(mutex_);
  return warnings_;
}

std::string Store::root() const { return disk_ ? disk_->root() : std::string(); }

std::vector<Key> Store::keys() const {
  std::vector<Key> keys;
  {
    const std::lock_guard guard(mutex_);
    for (const auto& [key, artifact] : memory_) keys.push_back(key);
  }
  if (disk_) {
    for (const StoredFile& file : disk_->scan()) {
      if (file.key) keys.push_back(*file.key);
    }
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

std::vector<Entry> Store::list() {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  std::vector<Entry> entries;
  if (!disk_) return entries;
  std::vector<StoredFile> files = disk_->scan();
  std::sort(files.begin(), files.end(),
            [](const StoredFile& a, const StoredFile& b) { return a.last_used_ns > b.last_used_ns; });
  for (const StoredFile& file : files) {
    if (!file.key) continue;
    Lookup lookup = disk_->inspect(*file.key);
    if (!lookup.problem.empty()) warn(std::move(lookup.problem));
    if (!lookup.artifact) continue;
    entries.push_back({*file.key, lookup.artifact->name, lookup.artifact->target, file.bytes,
                       file.last_used_ns / kNanoseconds, lookup.artifact->compile_ms});
  }
  return entries;
}

Verification Store::verify() {
  Verification result;
  if (!disk_) return result;
  for (const StoredFile& file : disk_->scan()) {
    if (!file.key) continue;
    Lookup lookup = disk_->inspect(*file.key);
    if (lookup.artifact) ++result.sound;
    if (!lookup.problem.empty()) result.damaged.push_back(std::move(lookup.problem));
  }
  return result;
}

std::int64_t Store::clear() {
  {
    const std::lock_guard guard(mutex_);
    memory_.clear();
  }
  return disk_ ? disk_->clear() : 0;
}

}  // namespace tilewright::cache
