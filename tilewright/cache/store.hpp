// The compiled kernels of a process and of its user: memory, then disk, then a compiler, once.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewright/cache/key.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/environment.hpp"

namespace tilewright::cache {

class Disk;

using ArtifactPtr = std::shared_ptr<const compile::Artifact>;

struct StoreOptions {
  std::string root;                                // empty: the usual places, see choose_root()
  bool on_disk = true;                             // false: memory only
  std::int64_t max_bytes = std::int64_t{2} << 30;  // on disk; the least recently used go first
  double lock_timeout_s = 300.0;                   // for another process that compiles the same kernel
};

/// How requests were served since the store was made.
struct Counters {
  std::int64_t memory_hits = 0;
  std::int64_t disk_hits = 0;
  std::int64_t compiles = 0;
  bool operator==(const Counters&) const = default;
};

/// One kernel on disk.
struct Entry {
  Key key;
  std::string name;
  Target target;
  std::int64_t bytes = 0;
  std::int64_t last_used_s = 0;  // since 1970
  double compile_ms = 0.0;
};

struct Verification {
  int sound = 0;
  std::vector<std::string> damaged;  // each set aside, with the reason
};

/// Thread-safe; many processes may share one root. No failure of the disk is an error: the kernel is in memory, and a
/// warning is logged and kept. An unsafe root is not used at all.
class Store {
 public:
  explicit Store(const StoreOptions& options = {},
                 const compile::Environment& environment = compile::capture_environment());
  ~Store();

  /// From memory, else from disk, else compiled. One compile a key: other threads and processes that ask meanwhile wait
  /// for it; a process that waited for lock_timeout_s compiles on its own. @throws what the compiler throws; a failure
  /// is not remembered.
  ArtifactPtr get_or_compile(const compile::Source& source, const compile::Compiler& compiler);

  /// The same for several, compiling on up to `threads` threads; the results are in order.
  /// @throws what the first that failed threw, after all ended.
  /// `on_ready`, if given, is called as each is ready, from any of the threads and one at a time.
  std::vector<ArtifactPtr> get_or_compile_all(std::span<const compile::Source> sources,
                                              const compile::Compiler& compiler, int threads,
                                              const std::function<void(const compile::Artifact&)>& on_ready = {});

  /// From memory or disk; null when in neither.
  ArtifactPtr find(const Key& key);

  /// Keeps it in memory and, if it can, on disk.
  void insert(const Key& key, const ArtifactPtr& artifact);

  Counters counters() const;

  /// What went wrong so far, in words: each once, the first hundred.
  std::vector<std::string> warnings() const;

  /// The folder; empty when the store is in memory only.
  std::string root() const;

  /// Every key in memory or on disk, sorted.
  std::vector<Key> keys() const;

  /// What is on disk, most recently used first. Damaged entries are set aside and not listed.
  std::vector<Entry> list();

  /// Reads every entry on disk and sets the damaged aside.
  Verification verify();

  /// Empties memory and disk. Returns the bytes freed on disk.
  std::int64_t clear();

 private:
  ArtifactPtr find_in_memory(const Key& key);
  ArtifactPtr find_on_disk(const Key& key);
  ArtifactPtr fetch_or_compile(const Key& key, const compile::Source& source, const compile::Compiler& compiler);
  void remember(const Key& key, const ArtifactPtr& artifact);
  void publish(const Key& key, const compile::Artifact& artifact);
  void warn(std::string message);

  StoreOptions options_;
  std::unique_ptr<Disk> disk_;  // null: memory only

  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<Key, ArtifactPtr, KeyHash> memory_;
  std::unordered_map<Key, std::shared_future<ArtifactPtr>, KeyHash> in_flight_;
  Counters counters_;
  std::vector<std::string> warnings_;
};

}  // namespace tilewright::cache
