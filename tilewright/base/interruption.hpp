// How long work (a compile, an emulated launch, a wait for another process) ends before its end: because the program
// asks for it, as on Ctrl-C, or because the process exits.
#pragma once

#include <atomic>
#include <functional>

#include "tilewright/base/error.hpp"

namespace tilewright {

/// The program asked for the end of the work. Nothing half-done stays behind.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// Sets what the calling thread's long work asks, for as long as the object lives. `check` ends the work by throwing;
/// what it throws reaches the caller of the work. The innermost one counts; an empty one switches checks off.
class ScopedInterruptCheck {
 public:
  explicit ScopedInterruptCheck(std::function<void()> check);
  ScopedInterruptCheck(const ScopedInterruptCheck&) = delete;
  ScopedInterruptCheck& operator=(const ScopedInterruptCheck&) = delete;
  ~ScopedInterruptCheck();

 private:
  std::function<void()> check_;
  std::function<void()>* outer_;
};

/// Passes an interruption of the thread that owns the work to the threads that help it.
class InterruptRelay {
 public:
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// What a helping thread checks. @throws Interrupted after stop()
  std::function<void()> check() const;

 private:
  std::atomic<bool> stopped_ = false;
};

/// To be called by long work at least every 50 ms, on each thread that does it; costs some 25 ns. Calls the thread's
/// check, every 10 ms at most. While the process exits it does not return, on any thread but the one that exits: the
/// thread sleeps until the process is gone, so that it touches nothing that exit() destroys.
/// @throws what the check throws
void check_interruption();

/// Marks the calling thread as doing long work: exit() waits until such threads sleep in check_interruption() or have
/// left their work, for at most two seconds. Work that cannot call check_interruption() says so with `uninterruptible`:
/// exit() waits for its end without limit.
class LongWork {
 public:
  enum class Kind { interruptible, uninterruptible };
  explicit LongWork(Kind kind = Kind::interruptible);
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;
  ~LongWork();

 private:
  Kind kind_;
};

/// What exit() does first: from now on, other threads sleep in check_interruption(). Waits as LongWork says. A program
/// that tears down what threads need before it calls exit(), as an interpreter does, calls it earlier. Once.
void begin_exit();

/// Whether the process exits and the calling thread is not the one that does it.
bool is_left_behind_by_exit() noexcept;

/// Sleeps until the process is gone. @pre is_left_behind_by_exit()
[[noreturn]] void sleep_until_exit() noexcept;

}  // namespace tilewright
