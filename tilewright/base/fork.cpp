#include "tilewright/base/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace tilewright {
namespace {

std::atomic<std::uint64_t> generation{0};

/// All ForkSafeMutexes and UninheritedFds. Never destroyed, because threads may use it while the process exits.
struct ForkRegistry {
  std::mutex mutex;  // guards the members below; held during a fork
  std::vector<std::mutex*> mutexes;
  std::vector<int> descriptors;

  ForkRegistry() { ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();
};

ForkRegistry& registry() {
  static auto* const instance = new ForkRegistry;
  return *instance;
}

void ForkRegistry::before_fork() {
  registry().mutex.lock();
  for (std::mutex* mutex : registry().mutexes) mutex->lock();
}

void ForkRegistry::after_fork_in_parent() {
  for (std::mutex* mutex : registry().mutexes) mutex->unlock();
  registry().mutex.unlock();
}

void ForkRegistry::after_fork_in_child() {
  ++generation;
  for (const int descriptor : registry().descriptors) ::close(descriptor);
  registry().descriptors.clear();
  after_fork_in_parent();
}

}  // namespace

std::uint64_t fork_generation() noexcept {
  static_cast<void>(registry());  // installs the handlers that count forks
  return generation.load(std::memory_order_relaxed);
}

ForkSafeMutex::ForkSafeMutex() {
  const std::scoped_lock lock(registry().mutex);
  registry().mutexes.push_back(&mutex_);
}

ForkSafeMutex::~ForkSafeMutex() {
  const std::scoped_lock lock(registry().mutex);
  std::erase(registry().mutexes, &mutex_);
}

ForkSafeMutex& thread_creation() {
  static auto* const mutex = new ForkSafeMutex;
  return *mutex;
}

UninheritedFd::UninheritedFd(int fd) : fd_(fd), generation_(fork_generation()) {
  if (fd < 0) return;
  const std::scoped_lock lock(registry().mutex);
  registry().descriptors.push_back(fd);
}

void UninheritedFd::reset() noexcept {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0 || generation_ != fork_generation()) return;  // the fork has closed it in the child
  // Closed under the lock: a fork between erase() and close() would leave the descriptor open in the child, and one
  // between close() and erase() would close another file there that got the same number.
  const std::scoped_lock lock(registry().mutex);
  std::erase(registry().descriptors, fd);
  ::close(fd);
}

}  // namespace tilewright
