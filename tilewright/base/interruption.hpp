// How long work (a compile, an emulated launch, a wait for another process) ends before its end: because the program
// asks for it, as on Ctrl-C, or because the process exits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

#include "tilewright/base/error.hpp"

namespace tilewright {

/// The program asked for the end of the work. Nothing half-done stays behind.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// Marks the calling thread as doing long work: exit() waits until such threads sleep in check_interruption() or have
/// left their work, for at most two seconds. Work that cannot call check_interruption() says so with `uninterruptible`:
/// exit() waits for its end without limit.
class LongWork {
 public:
  enum class Kind { interruptible, uninterruptible };
  explicit LongWork(Kind kind = Kind::interruptible);
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;
  /// While the process exits, the end of interruptible work is another place where the thread sleeps.
  ~LongWork();

  /// Ends the work early, without sleeping: for a thread that must go on because it holds what the exit needs, such as
  /// an interpreter's lock.
  void end() noexcept;

 private:
  Kind kind_;
  bool is_under_way_ = true;
};

/// Passes an interruption of the thread that owns the work, which makes the relay, to the threads that help it.
class InterruptRelay {
 public:
  InterruptRelay() noexcept;
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }

  /// What a thread that helps gives to its ScopedInterruptCheck. The thread is marked as doing long work, and ends with
  /// Interrupted after stop(). While the process exits it ends so, too, in place of sleeping: its owner waits for it.
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
  bool serves_exit_;  // its owner is the thread that exits the process, and needs its helpers
};

/// Sets what the calling thread's long work asks, for as long as the object lives. `check` ends the work by throwing;
/// what it throws reaches the caller of the work, and is thrown again by every later check_interruption() of the same
/// scope: work that takes it for a failure of one of its parts ends all the same. The innermost one counts; an empty
/// one switches checks off.
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
  std::exception_ptr thrown_;  // by the check
  ScopedInterruptCheck* outer_ = nullptr;
  bool was_exiting_thread_ = false;  // where there is a relay
};

/// To be called by long work at least every 50 ms, on each thread that does it; costs some 25 ns. Calls the thread's
/// check, every 10 ms at most, and less often where that takes long. While the process exits it does not return, on any
/// thread but the one that exits and those that help: the thread sleeps until the process is gone, so that it touches
/// nothing that exit() destroys.
/// @throws what the check throws
void check_interruption();

/// Calls check_interruption() once in 4096 calls: for loops whose single steps take some nanoseconds.
class PeriodicCheck {
 public:
  void operator()() {
    if (++steps_ % kPeriod == 0) check_interruption();
  }

 private:
  static constexpr std::uint32_t kPeriod = 4096;
  std::uint32_t steps_ = 0;
};

/// Whether the thread's check has ended its work. Who catches what a part of the work throws passes it on then.
bool is_interrupted() noexcept;

/// Runs `work` on this thread and on `helpers` more, and returns when all have ended. An interruption of this thread,
/// also while it waits for the others, ends their work as well, as their InterruptRelay says.
/// @throws what ended this thread's work, else what ended a helper's
void work_together(std::size_t helpers, const std::function<void()>& work);

/// From now on, other threads than this one sleep in check_interruption() and at the ends of their work. Does not wait.
void announce_exit() noexcept;

/// What exit() does first: announce_exit(), then waits as LongWork says. A program that tears down what threads need
/// before it calls exit(), as an interpreter does, calls it earlier. Waits once.
void begin_exit();

/// Whether the process exits and the calling thread is not the one that does it.
bool is_left_behind_by_exit() noexcept;

/// Sleeps until the process is gone. @pre is_left_behind_by_exit()
[[noreturn]] void sleep_until_exit() noexcept;

}  // namespace tilewright
