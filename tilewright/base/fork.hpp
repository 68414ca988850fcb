// What fork() must not break in the child: mutexes that other threads held, and descriptors through which the child
// would keep a lock or a connection of its parent alive.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

namespace tilewright {

/// The number of forks between the first process and this one. What a thread of another generation began, such as a
/// compile that others wait for, has no thread in this process that could end it.
std::uint64_t fork_generation() noexcept;

/// A mutex that a fork cannot leave locked in the child: fork() waits until no other thread holds one.
/// A thread that holds one must not lock, make or destroy another, make or destroy a descriptor below, or fork.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;
  ~ForkSafeMutex();

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// A descriptor that forked children do not keep: it is closed in them before fork() returns. (O_CLOEXEC closes a
/// descriptor at exec only.)
class UninheritedFd {
 public:
  UninheritedFd() = default;
  /// Takes ownership of `fd`; negative: of none.
  explicit UninheritedFd(int fd);
  UninheritedFd(UninheritedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}
  UninheritedFd& operator=(UninheritedFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
      generation_ = other.generation_;
    }
    return *this;
  }
  ~UninheritedFd() { reset(); }

  explicit operator bool() const { return get() >= 0; }
  /// -1 where there is none, and in a forked child.
  int get() const { return generation_ == fork_generation() ? fd_ : -1; }
  void reset() noexcept;

 private:
  int fd_ = -1;
  std::uint64_t generation_ = 0;
};

}  // namespace tilewright
