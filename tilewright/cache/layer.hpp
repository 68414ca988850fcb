// The entries of one cache folder, to be read: the user's own, or a shared one that others fill.
//
// An entry is read through one descriptor that was checked first: a regular file that nobody else could have written,
// never through a symbolic link, never blocking on a FIFO. Everything that is not proven damage (a descriptor limit, an
// I/O error, a stale network handle, a missing permission) is a miss, and leaves the entry as it is.
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

/// Found; or not there (all empty); or there but not usable, with the reason.
struct Lookup {
  std::optional<compile::Artifact> artifact;
  Key key;  // of what was found
  std::string problem;
  bool is_damaged = false;  // its bytes are proven to be wrong
};

/// A file below entries/ that a cache made.
struct StoredFile {
  std::string folder, file;  // "ab", "cdef....twk"
  std::optional<Key> key;    // where the name is that of an entry
  std::int64_t bytes = 0;
  std::int64_t last_used_ns = 0;  // since 1970
};

class Layer {
 public:
  /// Who may have written the entries: this user alone, or root as well.
  enum class Trust { own, shared };

  /// `root_fd`: as open_root() or open_shared_root() give it. Refused where it has no folder entries/.
  static Result<Layer> open(const std::string& root, compile::UniqueFd root_fd, Trust trust);

  const std::string& root() const { return root_; }
  int root_fd() const { return root_fd_.get(); }
  int entries_fd() const { return entries_fd_.get(); }

  /// `marks_use`: sets the time of last use to now.
  Lookup read(const Key& key, bool marks_use = false) const;

  /// An image of that source made by any compiler; one that was imported comes first.
  Lookup read_any(const Digest& source, bool marks_use = false) const;

  /// Every entry and every quarantined file, in no order; other files are passed over.
  std::vector<StoredFile> scan() const;

 private:
  Layer() = default;

  std::string root_;
  Trust trust_ = Trust::own;
  compile::UniqueFd root_fd_;
  compile::UniqueFd entries_fd_;
};

/// Opens a folder below `parent`, not through a symbolic link.
compile::UniqueFd open_folder(int parent, const std::string& name);

/// Calls visit(name) for each file of the folder. An open folder that cannot be listed counts as empty.
void for_each_name(int folder, const std::function<void(const std::string&)>& visit);

}  // namespace tilewright::cache
