// Locks between processes, each one byte of one file: the file never grows and is never deleted, so there is no race
// between deleting a lock file and taking it. They are open-file-description locks (Linux 3.15): the kernel drops them
// when their holder dies, and threads of one process exclude each other too.
#pragma once

#include <cstdint>

#include "tilewright/base/support.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {

class FileLock {
 public:
  /// Locks byte `offset` (0 .. 2^63 - 1) of `file` below the folder, made if missing. Waits at most `timeout_s`; 0 only
  /// tries. Refused when the time is over, or when the file cannot be locked at all, as on a read-only disk.
  static Result<FileLock> acquire(int folder, const char* file, std::int64_t offset, double timeout_s);

 private:
  explicit FileLock(compile::UniqueFd fd) : fd_(std::move(fd)) {}

  compile::UniqueFd fd_;
};

}  // namespace tilewright::cache
