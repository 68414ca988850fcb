// Reads the entries of one cache folder: the user's own, or a shared one that others fill.
//
// An entry is read through one descriptor that is checked first: it must be a regular file that no untrusted user can
// have written. Symbolic links are not followed, and FIFOs do not block. Any problem other than certain damage (a
// descriptor limit, an I/O error, a stale network handle, a missing permission) is a miss and does not change the
// entry.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/cache/entry.hpp"
#include "tilewright/cache/key.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {

/// The result of a lookup: an artifact; or a problem, if the entry exists but is unusable; or neither, if it is
/// missing.
struct Lookup {
  std::optional<compile::Artifact> artifact;
  Key key;  // the key of the entry that was found
  std::string problem;
  bool is_damaged = false;  // the entry's bytes are certainly wrong
};

/// A file below entries/ that a cache created.
struct StoredFile {
  std::string folder, file;  // "ab", "cdef....twk"
  std::optional<Key> key;    // empty unless the name is that of an entry
  std::int64_t bytes = 0;
  std::int64_t last_used_ns = 0;  // since 1970
};

class Layer {
 public:
  /// Allowed owners of the entries: only this user (own), or this user and root (shared).
  enum class Trust { own, shared };

  /// `root_fd`: the result of open_root() or open_shared_root(). Refused when the folder has no folder entries/.
  static Result<Layer> open(const std::string& root, compile::UniqueFd root_fd, Trust trust);

  const std::string& root() const { return root_; }
  int root_fd() const { return root_fd_.get(); }
  int entries_fd() const { return entries_fd_.get(); }

  /// Reads the entry of that key. `marks_use` sets its time of last use to now.
  Lookup read(const Key& key, bool marks_use = false) const;

  /// An artifact of that source made by any compiler; imported ones are preferred.
  Lookup read_any(const Digest& source, bool marks_use = false) const;

  /// Every entry and every file that was set aside, unsorted; other files are skipped.
  std::vector<StoredFile> scan() const;

 private:
  Layer() = default;

  std::string root_;
  Trust trust_ = Trust::own;
  compile::UniqueFd root_fd_;
  compile::UniqueFd entries_fd_;
};

/// Opens a folder in the open folder `parent`, without following a symbolic link.
compile::UniqueFd open_folder(int parent, const std::string& name);

/// Calls visit(name) for each entry of the open folder `folder`. A folder that cannot be listed counts as empty.
void for_each_name(int folder, const std::function<void(const std::string&)>& visit);

}  // namespace tilewright::cache
