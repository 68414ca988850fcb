// Interruption of long work (a compile, an emulated launch, a wait for another process), either by the program, for
// instance on Ctrl-C, or because the process exits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

#include "tilewright/base/error.hpp"

namespace tilewright {

/// Long work was interrupted. It leaves nothing half-done.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// Marks the calling thread as doing long work while the object lives. exit() waits at most two seconds for such
/// threads to finish their work or to go to sleep in check_interruption(). For work that cannot call
/// check_interruption() (`uninterruptible`) exit() waits without limit.
class LongWork {
 public:
  enum class Kind { interruptible, uninterruptible };
  explicit LongWork(Kind kind = Kind::interruptible);
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;
  /// If the process exits and the work is interruptible, the thread goes to sleep here as in check_interruption().
  ~LongWork();

  /// Ends the work early and without sleeping: for a thread that must go on because it holds a resource that exit()
  /// needs, such as an interpreter's lock.
  void end() noexcept;

 private:
  Kind kind_;
  bool is_under_way_ = true;
};

/// Passes an interruption of the thread that owns the work to its helper threads. The owner constructs the relay.
class InterruptRelay {
 public:
  InterruptRelay() noexcept;
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }

  /// The argument of a helper thread's ScopedInterruptCheck. The helper is marked as doing long work. After stop(), its
  /// check_interruption() throws Interrupted; while the process exits it does so too, instead of sleeping, because the
  /// owner waits for the helper.
  class Check {
    friend class InterruptRelay;
    friend class ScopedInterruptCheck;
    explicit Check(const InterruptRelay& relay) : relay_(&relay) {}
    const InterruptRelay* relay_;
  };
  Check check() const { return Check(*this); }

 private:
  friend class ScopedInterruptCheck;
  std::atomic<bool> stopped_ = false;
  bool owner_exits_;  // the owner is the thread that exits the process: its helpers must go on
};

/// Sets the function that check_interruption() calls on this thread while the object lives. `check` interrupts the work
/// by throwing. The exception reaches the caller of the work; every later check_interruption() in the same scope throws
/// it again, so that work that takes it for the failure of one of its parts ends all the same. The innermost of
/// nested objects counts; an empty `check` disables checks.
class ScopedInterruptCheck {
 public:
  explicit ScopedInterruptCheck(std::function<void()> check);
  explicit ScopedInterruptCheck(InterruptRelay::Check check);
  ScopedInterruptCheck(const ScopedInterruptCheck&) = delete;
  ScopedInterruptCheck& operator=(const ScopedInterruptCheck&) = delete;
  ~ScopedInterruptCheck();

 private:
  friend void check_interruption();
  friend bool is_interrupted() noexcept;
  void enter();
  void run();
  bool has_relay_stopped() const noexcept;

  std::function<void()> check_;
  const InterruptRelay* relay_ = nullptr;
  std::exception_ptr thrown_;  // the exception of check_
  ScopedInterruptCheck* outer_ = nullptr;
  bool was_exiting_thread_ = false;  // set with relay_ only
};

/// Every thread that does long work calls this at least every 50 ms; it costs about 25 ns. Calls the thread's check at
/// most every 10 ms, and less often if the check is slow. While the process exits, it does not return on other threads
/// than the one that exits and its helpers: they sleep until the process is gone, so that they touch nothing that
/// exit() destroys.
/// @throws the exception of the check
void check_interruption();

/// Calls check_interruption() once in 4096 calls: for loops whose iterations take nanoseconds.
class PeriodicCheck {
 public:
  void operator()() {
    if (++steps_ % kPeriod == 0) check_interruption();
  }

 private:
  static constexpr std::uint32_t kPeriod = 4096;
  std::uint32_t steps_ = 0;
};

/// Whether the thread's work was interrupted. Code that catches exceptions of a part of the work rethrows them then.
bool is_interrupted() noexcept;

/// Runs `work` on this thread and on `helpers` more threads, and returns when all have finished. An interruption of
/// this thread, also while it waits for the others, interrupts them as well (InterruptRelay).
/// @throws the exception of this thread, else the first one of a helper
void work_together(std::size_t helpers, const std::function<void()>& work);

/// From now on, all threads but this one sleep in check_interruption() and in the destructor of LongWork. Does not
/// wait.
void announce_exit() noexcept;

/// Calls announce_exit() and waits as described at LongWork, on the first call only. exit() calls it by an atexit
/// handler. A program that destroys resources of other threads before it calls exit(), as an interpreter does, calls it
/// earlier.
void begin_exit();

/// Whether another thread than the calling one exits the process.
bool is_left_behind_by_exit() noexcept;

/// Sleeps until the process is gone. @pre is_left_behind_by_exit()
[[noreturn]] void sleep_until_exit() noexcept;

}  // namespace tilewright
