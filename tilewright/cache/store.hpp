// The compiled kernels of a process and of its user: memory, then disk, then shared folders, then a compiler, once.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/base/lru_map.hpp"
#include "tilewright/cache/key.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/environment.hpp"

namespace tilewright::cache {

class Disk;
class Layer;
struct Lookup;

using ArtifactPtr = std::shared_ptr<const compile::Artifact>;

struct StoreOptions {
  std::string root;                                // empty: the usual places, see choose_root()
  bool on_disk = true;                             // false: memory only
  std::int64_t max_bytes = std::int64_t{2} << 30;  // on disk; the least recently used go first
  double lock_timeout_s = 300.0;                   // for another process that compiles the same kernel
  /// Folders that are read after the user's own and never written: parts of an image, network folders.
  std::vector<std::string> shared_roots = {};
  std::int64_t max_memory_bytes = std::int64_t{128} << 20;  // of artifacts kept in memory; see above
};

/// How requests were served since the store was made.
struct Counters {
  std::int64_t memory_hits = 0;
  std::int64_t disk_hits = 0;  // in the user's own folder or a shared one
  std::int64_t compiles = 0;
  bool operator==(const Counters&) const = default;
};

/// One kernel on disk.
struct Entry {
  Key key;
  std::string name;
  Target target;
  std::string compiler;  // as it calls itself
  std::int64_t bytes = 0;
  std::int64_t last_used_s = 0;  // since 1970
  double compile_ms = 0.0;
};

struct Verification {
  int sound = 0;
  std::vector<std::string> damaged;   // each set aside, with the reason
  std::vector<std::string> unusable;  // not read, with the reason: left as they are
};

/// Thread-safe, also across a fork while other threads compile; many processes may share one root. No failure of the
/// disk is an error: the kernel is in memory, and a warning is logged and kept. An unsafe root is not used at all.
class Store {
 public:
  explicit Store(const StoreOptions& options = {},
                 const compile::Environment& environment = compile::capture_environment());
  ~Store();

  /// From memory, else from disk, else compiled. An image that was imported, or that lies in a shared folder, serves
  /// whatever `compiler` is; one that was compiled here counts for its compiler alone. What is found is made from
  /// `source` as compile::check_made_from() says, or it is not used.
  /// One compile a key: other threads and processes that ask meanwhile wait for it; a process that waited for
  /// lock_timeout_s compiles on its own. @throws what the compiler throws, which is not remembered; what
  /// check_interruption() throws
  ArtifactPtr get_or_compile(const compile::Source& source, const compile::Compiler& compiler);

  /// The same for several, compiling on up to `threads` threads; the results are in order.
  /// @throws what the first that failed threw, after all ended.
  /// `on_ready`, if given, is called as each is ready, from any of the threads and one at a time.
  std::vector<ArtifactPtr> get_or_compile_all(std::span<const compile::Source> sources,
                                              const compile::Compiler& compiler, int threads,
                                              const std::function<void(const compile::Artifact&)>& on_ready = {});

  /// An image of the source in memory, on disk or in a shared folder, made by any compiler: what serves where there is
  /// no compiler. Null when there is none.
  ArtifactPtr find_any(const compile::Source& source);

  /// The kernel of exactly that key in memory or on disk; null when it is in neither.
  ArtifactPtr find(const Key& key);

  /// Keeps it in memory and, if it can, on disk.
  void insert(const Key& key, const ArtifactPtr& artifact);

  /// Forgets every image of that source, which no device loads: in memory, in the user's own folder, and in shared
  /// folders as far as this store is concerned. It is compiled anew when it is asked for. False: that was done before.
  bool discard(const compile::Source& source);

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

  /// Empties memory and the user's own folder. @throws Error naming the first file that could not be deleted and how
  /// many there are, after all others were. Returns the bytes freed on disk.
  std::int64_t clear();

 private:
  struct Flight;

  ArtifactPtr find_in_memory(const Key& key);
  /// On disk and in shared folders, for a compiler; null when there is none that may serve it.
  ArtifactPtr find_on_disk(const Key& key, const compile::Source& source);
  ArtifactPtr take(Lookup lookup, const compile::Source* source, const Disk* from);
  ArtifactPtr fetch_or_compile(const Key& key, const compile::Source& source, const compile::Compiler& compiler);
  void remember(const Key& key, const ArtifactPtr& artifact);
  void publish(const Key& key, const compile::Artifact& artifact);
  void warn(std::string message);
  void open_shared(const std::string& root);

  StoreOptions options_;
  std::unique_ptr<Disk> disk_;  // null: memory only
  std::vector<Layer> shared_;

  mutable ForkSafeMutex mutex_;  // guards what follows
  LruMap<Key, ArtifactPtr, KeyHash> memory_;
  std::unordered_map<Key, std::shared_ptr<Flight>, KeyHash> in_flight_;
  Counters counters_;
  std::vector<std::string> warnings_;
  std::set<Digest> discarded_;  // sources whose images on disk are not used
};

}  // namespace tilewright::cache
