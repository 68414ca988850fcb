// The user's own cache folder, which this program reads and writes:
//   tilewright-cache, CACHEDIR.TAG   mark the folder as a cache: root.hpp
//   entries/                         compiled kernels: entry.hpp
//   tmp/                             files being written, on file systems without O_TMPFILE
//   locks                            one byte per key, locked while a process compiles that key
//
// Many processes may use one root at the same time. An entry gets its name when it is complete, so a reader sees all of
// it or nothing, and a process that is killed leaves nothing behind. Nothing is synced: entries torn by a power failure
// are detected by their digest and renamed to .bad. The modification time of an entry is the time of its last use.
// Files are deleted only if a cache created them, and through descriptors of folders that were opened without following
// symbolic links.
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

/// The result of Disk::clear().
struct ClearReport {
  std::int64_t bytes = 0;             // freed
  std::vector<std::string> failures;  // "FILE: reason"
};

class Disk {
 public:
  /// Eviction keeps the total size of all entries below `max_bytes`. Refused when open_root() refuses, or when the
  /// folder entries/ does not exist and cannot be created.
  static Result<std::unique_ptr<Disk>> open(const std::string& root, std::int64_t max_bytes);

  const Layer& layer() const { return layer_; }
  const std::string& root() const { return layer_.root(); }

  /// The same as those of Layer, but an entry that is certainly damaged is set aside: it is renamed to end in .bad.
  Lookup read(const Key& key, bool marks_use = true) const;
  Lookup read_any(const Digest& source, bool marks_use = true) const;

  /// Sets an entry aside whose contents do not match its key.
  void quarantine(const Key& key) const;

  /// Stores the artifact and may evict others. An existing entry of that key is kept unless it is unsafe to read.
  /// Refused when the disk is full or read-only, or another call fails.
  Support publish(const Key& key, const compile::Artifact& artifact);

  /// Deletes the entry, if there is one.
  void remove(const Key& key) const;

  /// Locks one key against other processes and threads. Empty while another holder has it; refused where files cannot
  /// be locked, as on a read-only disk.
  Result<std::optional<FileLock>> try_lock(const Key& key) const;

  /// Deletes every entry, every file that was set aside, and every temporary file that has no writer.
  ClearReport clear();

 private:
  Disk(Layer layer, std::int64_t max_bytes) : layer_(std::move(layer)), max_bytes_(max_bytes) {}

  Lookup quarantine_if_damaged(Lookup lookup) const;
  void count_published(std::int64_t published_bytes);
  void evict();
  void sweep_temporary_files() const;

  Layer layer_;
  std::int64_t max_bytes_;
  compile::UniqueFd temporary_fd_;

  std::atomic<int> publishes_ = 0;
  std::atomic<std::int64_t> estimated_bytes_ = 0;  // total of the last scan plus what this process published since
};

}  // namespace tilewright::cache
