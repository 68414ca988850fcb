// The cache of compiled kernels. A kernel is looked up in memory, on disk and in shared folders, and compiled only if
// it is in none of them.
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

/// The default of TILEWRIGHT_CACHE_MAX_BYTES.
inline constexpr std::int64_t kDefaultMaxBytes = std::int64_t{2} << 30;

struct StoreOptions {
  std::string root;                           // empty: choose_root() chooses it
  bool on_disk = true;                        // false: memory only
  std::int64_t max_bytes = kDefaultMaxBytes;  // limit on disk; the least recently used entries are evicted first
  double lock_timeout_s =
      compile::ToolchainOptions{}.timeout_s;  // how long to wait while another process compiles the same kernel
  /// Folders that are read after the user's own and never written: parts of container images, network folders.
  std::vector<std::string> shared_roots = {};
  std::int64_t max_memory_bytes = std::int64_t{128}
                                  << 20;  // limit in memory; the least recently used are evicted first
};

/// How requests were served since the store was created.
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
  std::string compiler;  // as Artifact::compiler
  std::int64_t bytes = 0;
  std::int64_t last_used_s = 0;  // since 1970
  double compile_ms = 0.0;
};

struct Verification {
  int intact = 0;
  std::vector<std::string> damaged;   // one line per entry that was set aside, with the reason
  std::vector<std::string> unusable;  // one line per entry that could not be read and is unchanged, with the reason
};

/// Thread-safe, also across a fork while other threads compile; many processes may share one root. A failure of the
/// disk is not an error: the kernel stays in memory, and a warning is logged and kept. An unsafe root is not used.
class Store {
 public:
  explicit Store(const StoreOptions& options = {},
                 const compile::Environment& environment = compile::capture_environment());
  ~Store();

  /// Looks the kernel up in memory, on disk and in shared folders, else compiles it. An artifact that was imported or
  /// lies in a shared folder is used whatever `compiler` is; one that was compiled on this machine is used only for the
  /// same compiler. An artifact is used only if compile::check_made_from() accepts it for `source`.
  /// Each key is compiled once: other threads and processes that request it meanwhile wait. A process that has waited
  /// for lock_timeout_s compiles by itself.
  /// @throws whatever the compiler throws, which is not cached; whatever check_interruption() throws.
  ArtifactPtr get_or_compile(const compile::Source& source, const compile::Compiler& compiler);

  /// The same for several sources, compiling on up to `threads` threads; results are in the order of `sources`.
  /// `on_ready`, if given, is called for each artifact as soon as it is available, by any thread but one at a time.
  /// @throws the exception of the first source that failed, after all compiles have ended.
  std::vector<ArtifactPtr> get_or_compile_all(std::span<const compile::Source> sources,
                                              const compile::Compiler& compiler, int threads,
                                              const std::function<void(const compile::Artifact&)>& on_ready = {});

  /// An artifact of the source made by any compiler, from memory, disk or a shared folder; null when there is none.
  /// Used on machines without a compiler.
  ArtifactPtr find_any(const compile::Source& source);

  /// The artifact of exactly that key from memory or disk; null when it is in neither.
  ArtifactPtr find(const Key& key);

  /// Stores the artifact in memory and, if possible, on disk.
  void insert(const Key& key, const ArtifactPtr& artifact);

  /// Discards every artifact of a source after a device failed to load one: those in memory are dropped, those in the
  /// user's own folder set aside, those in shared folders ignored by this store. The next request compiles the source.
  /// False: the source was discarded before.
  bool discard(const compile::Source& source);

  Counters counters() const;

  /// The first hundred different warnings since the store was created.
  std::vector<std::string> warnings() const;

  /// The folder; empty when the store is in memory only.
  std::string root() const;

  /// Every key in memory or on disk, sorted.
  std::vector<Key> keys() const;

  /// The entries on disk, most recently used first. Damaged entries are set aside and not listed.
  std::vector<Entry> list();

  /// Reads every entry on disk and sets damaged ones aside.
  Verification verify();

  /// Deletes every artifact in memory and in the user's own folder. Returns the bytes freed on disk. @throws Error
  /// after deleting all other files, naming the first file that could not be deleted and the number of such files.
  std::int64_t clear();

 private:
  struct PendingCompile;

  ArtifactPtr find_in_memory(const Key& key);
  /// Looks on disk and in shared folders for an artifact that get_or_compile() may use; null when there is none.
  ArtifactPtr find_on_disk(const Key& key, const compile::Source& source);
  ArtifactPtr accept(Lookup lookup, const compile::Source* source, const Disk* from);
  ArtifactPtr fetch_or_compile(const Key& key, const compile::Source& source, const compile::Compiler& compiler);
  void remember(const Key& key, const ArtifactPtr& artifact);
  void publish(const Key& key, const compile::Artifact& artifact);
  void warn(std::string message);
  void open_shared(const std::string& root);

  StoreOptions options_;
  std::unique_ptr<Disk> disk_;  // null: memory only
  std::vector<Layer> shared_;

  mutable ForkSafeMutex mutex_;  // guards the members below
  LruMap<Key, ArtifactPtr, KeyHash> memory_;
  std::unordered_map<Key, std::shared_ptr<PendingCompile>, KeyHash> pending_;
  Counters counters_;
  std::vector<std::string> warnings_;
  std::set<Digest> discarded_;  // sources whose artifacts on disk are ignored
};

}  // namespace tilewright::cache
