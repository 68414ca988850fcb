// Mutexes and file descriptors that are safe to use in a process that forks: the child inherits no mutex locked by
// another thread, no descriptor that would keep a lock or a connection of its parent alive, and no half-created thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

namespace tilewright {

/// The number of forks between the first process and this one. Work that began in another generation, such as a compile
/// that other threads wait for, never ends in this process: its thread does not exist here.
std::uint64_t fork_generation() noexcept;

/// A mutex that is never left locked in a forked child: fork() waits until no thread holds one. A thread that holds one
/// must not fork, must not lock, create or destroy another one, and must not create or destroy an UninheritedFd.
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

/// Held while a thread is created, so that no fork happens meanwhile. glibc first frees the thread-local memory of the
/// ended thread whose stack the new one gets, and then forgets where it was. In a child that is forked in between, the
/// next thread frees it a second time. Never destroyed, because threads may work while the process exits.
ForkSafeMutex& thread_creation();

/// A file descriptor that is closed in forked children before fork() returns. (O_CLOEXEC closes it at exec only.)
class UninheritedFd {
 public:
  UninheritedFd() = default;
  /// Takes ownership of `fd`. A negative one means no descriptor.
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
  /// -1 if there is none, or in a forked child.
  int get() const { return generation_ == fork_generation() ? fd_ : -1; }
  void reset() noexcept;

 private:
  int fd_ = -1;
  std::uint64_t generation_ = 0;
};

}  // namespace tilewright
