#include "tilewright/cache/file_lock.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace tilewright::cache {

Result<FileLock> FileLock::acquire(int folder, const char* file, std::int64_t offset, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLongestPause{20};  // how late a waiter may notice that the holder is gone
  compile::UniqueFd fd(::openat(folder, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return refuse("cannot open {}: {}", file, std::strerror(errno));
  struct flock request {};
  request.l_type = F_WRLCK;
  request.l_whence = SEEK_SET;
  request.l_start = offset;
  request.l_len = 1;

  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kLongestPause)) {
    if (::fcntl(fd.get(), F_OFD_SETLK, &request) == 0) return FileLock(std::move(fd));
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
      return refuse("cannot lock {}: {}", file, std::strerror(errno));
    }
    if (Clock::now() >= deadline) return refuse("somebody else holds the lock after {} s", timeout_s);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace tilewright::cache
