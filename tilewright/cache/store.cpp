#include "tilewright/cache/store.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tilewright/base/interruption.hpp"
#include "tilewright/cache/disk.hpp"
#include "tilewright/cache/root.hpp"
#include "tilewright/compile/parallel.hpp"

namespace tilewright::cache {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPollInterval = 10ms;          // between looks at the disk while another process compiles
constexpr auto kSilentWait = 2s;              // a process that waits longer logs a warning
constexpr std::int64_t kArtifactBytes = 512;  // approximate size of an artifact without its code

std::int64_t memory_cost(const compile::Artifact& artifact) {
  return kArtifactBytes + static_cast<std::int64_t>(artifact.cubin.size() + artifact.ptx.size());
}

}  // namespace

/// A compile in progress. The thread that compiles sets `done`; the threads that wait use `result`.
struct Store::PendingCompile {
  std::promise<ArtifactPtr> done;  // null when the compile was interrupted: the waiting threads try again
  std::shared_future<ArtifactPtr> result = done.get_future().share();
  std::uint64_t generation = fork_generation();  // differs in a forked child, where the compiling thread does not exist
};

Store::Store(const StoreOptions& options, const compile::Environment& environment)
    : options_(options), memory_(options.max_memory_bytes) {
  if (!options.on_disk) return;
  for (const std::string& shared : options.shared_roots) open_shared(shared);
  const std::string root = choose_root(options.root, environment);
  if (root.empty()) {
    warn("there is no folder for the cache: set TILEWRIGHT_CACHE_DIR or HOME; kernels are kept in memory only");
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

void Store::open_shared(const std::string& root) {
  Result<compile::UniqueFd> folder = open_shared_root(root);
  Result<Layer> layer =
      folder ? Layer::open(root, *std::move(folder), Layer::Trust::shared) : Result<Layer>(folder.refusal());
  if (layer) {
    shared_.push_back(*std::move(layer));
  } else {
    warn(fmt::format("the shared cache folder is not used: {}", layer.reason()));
  }
}

ArtifactPtr Store::get_or_compile(const compile::Source& source, const compile::Compiler& compiler) {
  const LongWork work;
  const Key key = make_key(source, compiler.identity_for(source));
  while (true) {
    std::shared_ptr<PendingCompile> own;
    std::shared_future<ArtifactPtr> others;
    {
      const std::scoped_lock lock(mutex_);
      if (const ArtifactPtr* const found = memory_.find(key)) {
        ++counters_.memory_hits;
        return *found;
      }
      std::shared_ptr<PendingCompile>& pending = pending_[key];
      if (pending == nullptr || pending->generation != fork_generation()) {
        own = pending = std::make_shared<PendingCompile>();
      } else {
        others = pending->result;
      }
    }
    if (others.valid()) {
      while (others.wait_for(kPollInterval) != std::future_status::ready) check_interruption();
      if (ArtifactPtr artifact = others.get()) return artifact;
      continue;
    }
    const auto finish = [&] {
      const std::scoped_lock lock(mutex_);
      pending_.erase(key);
    };
    try {
      ArtifactPtr artifact = fetch_or_compile(key, source, compiler);
      remember(key, artifact);
      finish();
      own->done.set_value(artifact);
      return artifact;
    } catch (const Interrupted&) {
      finish();
      own->done.set_value(nullptr);
      throw;
    } catch (const std::exception& error) {
      finish();
      // Other exceptions come from this thread's interrupt check and may belong to another language, so they are not
      // passed on to the threads that wait.
      const bool is_ours = dynamic_cast<const Error*>(&error) != nullptr;
      is_ours ? own->done.set_exception(std::current_exception()) : own->done.set_value(nullptr);
      throw;
    } catch (...) {
      finish();
      own->done.set_value(nullptr);
      throw;
    }
  }
}

ArtifactPtr Store::fetch_or_compile(const Key& key, const compile::Source& source, const compile::Compiler& compiler) {
  if (ArtifactPtr found = find_on_disk(key, source)) return found;
  std::optional<FileLock> lock;  // held until the artifact is published
  const auto start = Clock::now();
  const auto waited = [&] { return Clock::now() - start; };
  bool is_announced = false;
  while (disk_) {
    Result<std::optional<FileLock>> attempt = disk_->try_lock(key);
    // Looked up again after each attempt: the previous holder of the lock may have published the artifact, and a child
    // that it forked may still hold the lock.
    if (ArtifactPtr found = find_on_disk(key, source)) return found;
    if (!attempt) {
      warn("compiling without a lock: " + attempt.reason());
      break;
    }
    if ((lock = *std::move(attempt))) break;
    if (waited() >= std::chrono::duration<double>(options_.lock_timeout_s)) {
      warn(fmt::format("compiling {} without a lock: another process holds the lock on it after {} s", source.name,
                       options_.lock_timeout_s));
      break;
    }
    if (!is_announced && waited() >= kSilentWait) {
      is_announced = true;
      spdlog::warn("waiting for another process that compiles {} and holds its lock in {}/locks; for {} s at most",
                   source.name, disk_->root(), options_.lock_timeout_s);
    }
    check_interruption();
    std::this_thread::sleep_for(kPollInterval);
  }
  auto artifact = std::make_shared<const compile::Artifact>(compiler.compile(source));
  {
    const std::scoped_lock guard(mutex_);
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
    const Key key = make_key(sources[i], compiler.identity_for(sources[i]));
    artifacts[i] = find_in_memory(key);
    if (!artifacts[i] && (artifacts[i] = find_on_disk(key, sources[i]))) remember(key, artifacts[i]);
    artifacts[i] ? tell(artifacts[i]) : missing.push_back(i);
  }
  compile::for_each_index(missing.size(), threads, [&](std::size_t index) {
    const std::size_t i = missing[index];
    artifacts[i] = get_or_compile(sources[i], compiler);
    tell(artifacts[i]);
  });
  return artifacts;
}

ArtifactPtr Store::find_any(const compile::Source& source) {
  const Digest digest = compile::source_digest(source);
  {
    const std::scoped_lock lock(mutex_);
    ArtifactPtr found;
    memory_.for_each([&](const Key& key, const ArtifactPtr& artifact) {
      if (key.source == digest) found = artifact;
    });
    if (found) {
      ++counters_.memory_hits;
      return found;
    }
  }
  ArtifactPtr found = disk_ ? accept(disk_->read_any(digest), &source, disk_.get()) : nullptr;
  for (const Layer& layer : shared_) {
    if (!found) found = accept(layer.read_any(digest), &source, nullptr);
  }
  if (found) remember({digest, kImported}, found);
  return found;
}

ArtifactPtr Store::find(const Key& key) {
  if (ArtifactPtr found = find_in_memory(key)) return found;
  ArtifactPtr found = disk_ ? accept(disk_->read(key), nullptr, disk_.get()) : nullptr;
  if (found) remember(key, found);
  return found;
}

void Store::insert(const Key& key, const ArtifactPtr& artifact) {
  remember(key, artifact);
  publish(key, *artifact);
}

bool Store::discard(const compile::Source& source) {
  const Digest digest = compile::source_digest(source);
  std::vector<ArtifactPtr> gone;
  {
    const std::scoped_lock lock(mutex_);
    gone = memory_.erase_if([&](const Key& key, const ArtifactPtr&) { return key.source == digest; });
    if (!discarded_.insert(digest).second) return false;
  }
  if (!disk_) return true;
  for (Lookup found = disk_->read_any(digest, false); found.artifact; found = disk_->read_any(digest, false)) {
    disk_->quarantine(found.key);
    if (disk_->layer().read(found.key).artifact) break;  // it could not be renamed: the disk is read-only
  }
  return true;
}

ArtifactPtr Store::find_in_memory(const Key& key) {
  const std::scoped_lock lock(mutex_);
  const ArtifactPtr* const found = memory_.find(key);
  if (found == nullptr) return nullptr;
  ++counters_.memory_hits;
  return *found;
}

ArtifactPtr Store::find_on_disk(const Key& key, const compile::Source& source) {
  {
    const std::scoped_lock lock(mutex_);
    if (discarded_.contains(key.source)) return nullptr;
  }
  ArtifactPtr found;
  if (disk_) {
    found = accept(disk_->read(key), &source, disk_.get());
    if (!found) found = accept(disk_->read({key.source, kImported}), &source, disk_.get());
  }
  for (const Layer& layer : shared_) {
    if (!found) found = accept(layer.read(key), &source, nullptr);
    if (!found) found = accept(layer.read_any(key.source), &source, nullptr);
  }
  return found;
}

/// The artifact of a lookup, if check_made_from() accepts it for `source`, which may be null; logs the lookup's
/// problem. An artifact that is not accepted is set aside in `from`, unless that is null.
ArtifactPtr Store::accept(Lookup lookup, const compile::Source* source, const Disk* from) {
  if (lookup.artifact && source != nullptr) {
    if (const Support right = compile::check_made_from(*lookup.artifact, *source); !right) {
      lookup.problem = fmt::format("cache entry {} is not used: {}", lookup.key.name(), right.reason());
      lookup.artifact.reset();
      if (from != nullptr) from->quarantine(lookup.key);
    }
  }
  if (!lookup.problem.empty()) warn(std::move(lookup.problem));
  if (!lookup.artifact) return nullptr;
  auto artifact = std::make_shared<const compile::Artifact>(*std::move(lookup.artifact));
  const std::scoped_lock lock(mutex_);
  ++counters_.disk_hits;
  return artifact;
}

void Store::remember(const Key& key, const ArtifactPtr& artifact) {
  std::vector<ArtifactPtr> evicted;  // destroyed after the lock is released
  const std::scoped_lock lock(mutex_);
  evicted = memory_.insert(key, artifact, memory_cost(*artifact));
}

void Store::publish(const Key& key, const compile::Artifact& artifact) {
  if (!disk_) return;
  if (const Support kept = disk_->publish(key, artifact); !kept) warn(kept.reason());
}

// Each message is logged once: on a full disk, every publish would log the same one.
void Store::warn(std::string message) {
  constexpr std::size_t kMaxWarnings = 100;
  {
    const std::scoped_lock lock(mutex_);
    if (std::ranges::find(warnings_, message) != warnings_.end()) return;
    if (warnings_.size() < kMaxWarnings) warnings_.push_back(message);
  }
  spdlog::warn("{}", message);
}

Counters Store::counters() const {
  const std::scoped_lock lock(mutex_);
  return counters_;
}

std::vector<std::string> Store::warnings() const {
  const std::scoped_lock lock(mutex_);
  return warnings_;
}

std::string Store::root() const { return disk_ ? disk_->root() : std::string(); }

std::vector<Key> Store::keys() const {
  std::vector<Key> keys;
  {
    const std::scoped_lock lock(mutex_);
    memory_.for_each([&](const Key& key, const ArtifactPtr&) { keys.push_back(key); });
  }
  if (disk_) {
    for (const StoredFile& file : disk_->layer().scan()) {
      if (file.key) keys.push_back(*file.key);
    }
  }
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

std::vector<Entry> Store::list() {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  std::vector<Entry> entries;
  if (!disk_) return entries;
  std::vector<StoredFile> files = disk_->layer().scan();
  std::ranges::sort(files, std::ranges::greater(), &StoredFile::last_used_ns);
  for (const StoredFile& file : files) {
    if (!file.key) continue;
    Lookup lookup = disk_->read(*file.key, false);
    if (!lookup.problem.empty()) warn(std::move(lookup.problem));
    if (!lookup.artifact) continue;
    entries.push_back({*file.key, lookup.artifact->name, lookup.artifact->target, lookup.artifact->compiler, file.bytes,
                       file.last_used_ns / kNanoseconds, lookup.artifact->compile_ms});
  }
  return entries;
}

Verification Store::verify() {
  Verification result;
  if (!disk_) return result;
  for (const StoredFile& file : disk_->layer().scan()) {
    if (!file.key) continue;
    Lookup lookup = disk_->read(*file.key, false);
    if (lookup.artifact) ++result.intact;
    if (!lookup.problem.empty())
      (lookup.is_damaged ? result.damaged : result.unusable).push_back(std::move(lookup.problem));
  }
  return result;
}

std::int64_t Store::clear() {
  std::vector<ArtifactPtr> gone;
  {
    const std::scoped_lock lock(mutex_);
    gone = memory_.clear();
  }
  if (!disk_) return 0;
  const ClearReport report = disk_->clear();
  if (!report.failures.empty()) {
    throw Error(fmt::format("{} of the cache's files could not be deleted: {}", report.failures.size(),
                            report.failures.front()));
  }
  return report.bytes;
}

}  // namespace tilewright::cache
