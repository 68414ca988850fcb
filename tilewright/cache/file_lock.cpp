#include "tilewright/cache/file_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "tilewright/base/interruption.hpp"

namespace tilewright::cache {

Result<std::optional<FileLock>> FileLock::try_acquire(int folder, const char* file, std::int64_t offset) {
  UninheritedFd fd(::openat(folder, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!fd) return refuse("cannot open {}: {}", file, std::strerror(errno));
  struct flock request {};
  request.l_type = F_WRLCK;
  request.l_whence = SEEK_SET;
  request.l_start = offset;
  request.l_len = 1;
  int failed = 0;
  do {
    failed = ::fcntl(fd.get(), F_OFD_SETLK, &request) == 0 ? 0 : errno;
  } while (failed == EINTR);
  if (failed == 0) return std::optional(FileLock(std::move(fd)));
  if (failed == EAGAIN || failed == EACCES) return std::optional<FileLock>();
  return refuse("cannot lock {}: {}", file, std::strerror(failed));
}

Result<FileLock> FileLock::acquire(int folder, const char* file, std::int64_t offset, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLongestPause{20};  // upper bound of the delay between release and acquisition
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kLongestPause)) {
    Result<std::optional<FileLock>> lock = try_acquire(folder, file, offset);
    if (!lock) return lock.refusal();
    if (*lock) return **std::move(lock);
    if (Clock::now() >= deadline) return refuse("another process still holds the lock after {} s", timeout_s);
    check_interruption();
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace tilewright::cache
