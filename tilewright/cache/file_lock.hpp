// Locks between processes, each one byte of one file: the file never grows and is never deleted, so there is no race
// between deleting a lock file and taking it. They are open-file-description locks (Linux 3.15): the kernel drops them
// when their holder dies, threads of one process exclude each other too, and a forked child does not keep them.
#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/base/fork.hpp"
#include "tilewright/base/support.hpp"

namespace tilewright::cache {

class FileLock {
 public:
  /// Locks byte `offset` (0 .. 2^63 - 1) of `file` below the folder, made if missing. Nothing while another process or
  /// thread holds it. Refused when the file cannot be locked at all, as on a read-only disk.
  static Result<std::optional<FileLock>> try_acquire(int folder, const char* file, std::int64_t offset);

  /// The same, waiting for the holder at most `timeout_s`, and refused after that.
  /// @throws what check_interruption() throws
  static Result<FileLock> acquire(int folder, const char* file, std::int64_t offset, double timeout_s);

 private:
  explicit FileLock(UninheritedFd fd) : fd_(std::move(fd)) {}

  UninheritedFd fd_;
};

}  // namespace tilewright::cache
