// Locks between processes, each on one byte of a common file, which stays empty and is never deleted: deleting lock
// files would race with locking them. They are open-file-description locks (Linux 3.15): the operating system releases
// them when their holder dies, they also exclude threads of the same process, and a forked child does not keep them.
#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/base/fork.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright::cache {

class FileLock {
 public:
  /// Locks byte `offset` (0 .. 2^63 - 1) of `file` in the open folder `folder`; the file is created if missing. Empty
  /// while another process or thread holds the lock. Refused when the file cannot be locked at all, as on a read-only
  /// disk.
  static Result<std::optional<FileLock>> try_acquire(int folder, const char* file, std::int64_t offset);

  /// The same, but waits up to `timeout_s` seconds for the holder and is refused after that.
  /// @throws whatever check_interruption() throws.
  static Result<FileLock> acquire(int folder, const char* file, std::int64_t offset, double timeout_s);

 private:
  explicit FileLock(UninheritedFd fd) : fd_(std::move(fd)) {}

  UninheritedFd fd_;
};

}  // namespace tilewright::cache
