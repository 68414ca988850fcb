// The user's own cache folder: the layer that this program reads and writes.
//   tilewright-cache, CACHEDIR.TAG   what marks the folder as a cache: root.hpp
//   entries/                         compiled kernels: entry.hpp
//   tmp/                             where files lie while they are written, on file systems without O_TMPFILE
//   locks                            one byte a key, locked while a process compiles that key
//
// Many processes may use one root at once. An entry gets its name when it is complete, so a reader sees all of it or
// nothing, and a process that is killed leaves nothing behind. Nothing is synced: what a power cut tears is found by
// the digest, and renamed to .bad. The time of last use is the file's modification time. Files are deleted through
// descriptors of folders that were opened without following symbolic links, and only those that a cache made.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/fork.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/cache/file_lock.hpp"
#include "tilewright/cache/layer.hpp"

namespace tilewright::cache {

/// What clear() did.
struct Cleared {
  std::int64_t bytes = 0;
  std::vector<std::string> failures;  // "FILE: reason"
};

class Disk {
 public:
  /// `max_bytes`: what eviction keeps the sum of all entries below. Refused when open_root() refuses or the folders
  /// cannot be made and are not there.
  static Result<std::unique_ptr<Disk>> open(const std::string& root, std::int64_t max_bytes);

  const Layer& layer() const { return layer_; }
  const std::string& root() const { return layer_.root(); }

  /// As those of the layer. An entry that is proven to be damaged is set aside, as a file that ends in .bad.
  Lookup read(const Key& key, bool marks_use = true) const;
  Lookup read_any(const Digest& source, bool marks_use = true) const;

  /// Sets the entry aside: what it holds is not what its key says.
  void quarantine(const Key& key) const;

  /// Keeps the artifact; may evict others. What is there already under that key stays, unless it cannot be used.
  /// Refused when the disk is full, read-only, or otherwise fails.
  Support publish(const Key& key, const compile::Artifact& artifact);

  /// Deletes the entry, if there is one.
  void remove(const Key& key) const;

  /// Excludes other processes and threads from one key. Nothing while another has it; refused where nothing can be
  /// locked, as on a read-only disk.
  Result<std::optional<FileLock>> try_lock(const Key& key) const;

  /// Deletes every entry, quarantined file, and temporary file that no process writes to.
  Cleared clear();

 private:
  Disk(Layer layer, std::int64_t max_bytes) : layer_(std::move(layer)), max_bytes_(max_bytes) {}

  Lookup set_aside_if_damaged(Lookup lookup) const;
  void account_for(std::int64_t published_bytes);
  void evict();
  void sweep_temporary_files() const;

  Layer layer_;
  std::int64_t max_bytes_;
  compile::UniqueFd temporary_fd_;

  std::atomic<int> publishes_ = 0;
  std::atomic<std::int64_t> estimated_bytes_ = 0;  // from the last scan, plus what this process published since
};

}  // namespace tilewright::cache
