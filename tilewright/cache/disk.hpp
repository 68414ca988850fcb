// Compiled kernels as files: entries/<2 hex>/<62 hex>.twk below a root, each the key followed by the artifact.
//
// Many processes may use one root at once. An entry is written under tmp/ and renamed into place, so a reader sees all
// of it or nothing; a lost race replaces an entry by an equal one. Nothing is synced: what a power cut tears is found
// by the hash. An entry is read through one descriptor that was checked first: a regular file of ours with one link,
// never through a symlink, never blocking on a FIFO. One that is damaged, or is not what its name says, is renamed to
// .bad. The time of last use is the file's modification time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/cache/file_lock.hpp"
#include "tilewright/cache/key.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {

/// Found, not there (both empty), or there but refused, with the reason.
struct Lookup {
  std::optional<compile::Artifact> artifact;
  std::string problem;
};

/// A file below entries/, whatever it is.
struct StoredFile {
  std::string path;        // relative to entries/: "ab/cdef....twk"
  std::optional<Key> key;  // when the name is that of an entry
  std::int64_t bytes = 0;
  std::int64_t last_used_ns = 0;  // since 1970
};

class Disk {
 public:
  /// `max_bytes`: what eviction keeps the sum of all files below. Refused when open_root() refuses or the folders
  /// cannot be made and are not there.
  static Result<std::unique_ptr<Disk>> open(const std::string& root, std::int64_t max_bytes);

  const std::string& root() const { return root_; }

  /// Marks the entry as used now.
  Lookup read(const Key& key) const;

  /// As read(), leaving the time of last use alone.
  Lookup inspect(const Key& key) const;

  /// Keeps the artifact; may evict others. Refused when the disk is full, read-only, or otherwise fails.
  Support publish(const Key& key, const compile::Artifact& artifact);

  /// Excludes other processes and threads from one key; waits at most `timeout_s`.
  Result<FileLock> lock(const Key& key, double timeout_s) const;

  /// Everything below entries/, in no order.
  std::vector<StoredFile> scan() const;

  /// Deletes every entry, quarantined file and temporary file. Returns the bytes freed.
  std::int64_t clear();

 private:
  Disk(std::string root, std::int64_t max_bytes) : root_(std::move(root)), max_bytes_(max_bytes) {}

  Lookup read_entry(const Key& key, bool touch) const;
  void quarantine(int folder, const std::string& name) const;
  void account_for(std::int64_t published_bytes);
  void evict();
  bool delete_down_to(std::int64_t wanted_bytes, const std::vector<StoredFile>& oldest_first);
  void sweep_temporary_files(double older_than_s) const;

  std::string root_;
  std::int64_t max_bytes_;
  compile::UniqueFd root_fd_;
  compile::UniqueFd entries_fd_;
  compile::UniqueFd temporary_fd_;

  std::mutex accounting_;
  int publishes_ = 0;                 // guarded by accounting_, as is the next
  std::int64_t estimated_bytes_ = 0;  // from the last scan, plus what this process published since
};

}  // namespace tilewright::cache
