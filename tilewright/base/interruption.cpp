#include "tilewright/base/interruption.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tilewright/base/fork.hpp"

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr Clock::duration kMinCheckInterval = 10ms;
constexpr Clock::duration kMaxCheckInterval = 100ms;
constexpr auto kMaxExitWait = 2s;

using Kind = LongWork::Kind;
using WorkCounts = std::array<int, 2>;  // by kind

// One object, because each access to a thread_local costs a function call in a shared library.
struct ThisThread {
  ScopedInterruptCheck* check = nullptr;
  Clock::time_point next_check{};
  WorkCounts works{};
  bool exits_process = false;
};
thread_local constinit ThisThread this_thread;

std::array<std::atomic<int>, 2> all_works{};
std::atomic<bool> is_exiting = false;
std::atomic<bool> has_waited_for_work = false;  // begin_exit() was called

int works_of_others(Kind kind) {
  const auto of_kind = static_cast<std::size_t>(kind);
  return all_works[of_kind] - this_thread.works[of_kind];
}

void count(ThisThread& thread, Kind kind, int works) noexcept {
  thread.works[static_cast<std::size_t>(kind)] += works;
  all_works[static_cast<std::size_t>(kind)] += works;
}

bool is_left_behind(const ThisThread& thread) noexcept { return is_exiting && !thread.exits_process; }

// The other threads' works do not exist in a forked child.
void forget_other_threads() {
  std::ranges::copy(this_thread.works, all_works.begin());
  is_exiting = false;
  has_waited_for_work = false;
}

void register_handlers() {
  static const int registered = [] {
    ::pthread_atfork(nullptr, nullptr, forget_other_threads);
    return std::atexit(begin_exit);
  }();
  static_cast<void>(registered);
}

/// Blocks signals in threads that are started meanwhile: the program's own threads must get them, because a signal ends
/// their waits.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t signals;
    ::sigfillset(&signals);
    for (const int synchronous : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF})
      ::sigdelset(&signals, synchronous);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

[[noreturn]] void throw_interrupted() {
  throw Interrupted("interrupted: the thread that owns the work was interrupted");
}

}  // namespace

LongWork::LongWork(Kind kind) : kind_(kind) {
  register_handlers();
  ThisThread& thread = this_thread;
  count(thread, kind_, 1);
  if (is_left_behind(thread)) sleep_until_exit();
}

LongWork::~LongWork() {
  // The thread must not return to its caller, which could touch objects that exit() has destroyed.
  if (is_under_way_ && kind_ == Kind::interruptible && is_left_behind_by_exit()) sleep_until_exit();
  end();
}

void LongWork::end() noexcept {
  if (std::exchange(is_under_way_, false)) count(this_thread, kind_, -1);
}

InterruptRelay::InterruptRelay() noexcept : owner_exits_(this_thread.exits_process) {}

ScopedInterruptCheck::ScopedInterruptCheck(std::function<void()> check) : check_(std::move(check)) { enter(); }

ScopedInterruptCheck::ScopedInterruptCheck(InterruptRelay::Check check) : relay_(check.relay_) {
  enter();
  register_handlers();
  ThisThread& thread = this_thread;
  was_exiting_thread_ = std::exchange(thread.exits_process, thread.exits_process || relay_->owner_exits_);
  count(thread, Kind::interruptible, 1);
}

void ScopedInterruptCheck::enter() {
  ThisThread& thread = this_thread;
  outer_ = std::exchange(thread.check, this);
  thread.next_check = {};
}

ScopedInterruptCheck::~ScopedInterruptCheck() {
  ThisThread& thread = this_thread;
  thread.check = outer_;
  thread.next_check = {};
  if (relay_ == nullptr) return;
  count(thread, Kind::interruptible, -1);
  thread.exits_process = was_exiting_thread_;
}

void ScopedInterruptCheck::run() {
  if (thrown_) std::rethrow_exception(thrown_);
  if (!check_) return;
  const Clock::time_point begin = Clock::now();
  if (begin < this_thread.next_check) return;
  try {
    check_();
  } catch (...) {
    thrown_ = std::current_exception();
    throw;
  }
  // If each check waits for a contended lock, the work itself still gets most of the time.
  const Clock::time_point end = Clock::now();
  this_thread.next_check = end + std::clamp(10 * (end - begin), kMinCheckInterval, kMaxCheckInterval);
}

bool ScopedInterruptCheck::has_relay_stopped() const noexcept {
  return relay_->is_stopped() || is_left_behind(this_thread);
}

void check_interruption() {
  const ThisThread& thread = this_thread;
  if (thread.check != nullptr && thread.check->relay_ != nullptr) {
    if (thread.check->has_relay_stopped()) throw_interrupted();
    return;
  }
  if (is_left_behind(thread)) sleep_until_exit();
  if (thread.check != nullptr) thread.check->run();
}

bool is_interrupted() noexcept {
  const ScopedInterruptCheck* const check = this_thread.check;
  if (check == nullptr) return false;
  return check->thrown_ != nullptr || (check->relay_ != nullptr && check->has_relay_stopped());
}

void work_together(std::size_t helpers, const std::function<void()>& work) {
  const LongWork own;  // so that exit() waits for the helpers, too
  InterruptRelay relay;
  std::mutex mutex;  // guards the variables below
  std::condition_variable helper_finished;
  std::size_t running = helpers;
  std::exception_ptr helper_failure;
  const auto help = [&] {
    std::exception_ptr failure;
    try {
      const ScopedInterruptCheck check(relay.check());
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::scoped_lock lock(mutex);
    if (!helper_failure) helper_failure = failure;
    --running;
    helper_finished.notify_one();
  };
  std::exception_ptr owner_failure;
  {
    std::vector<std::jthread> threads;
    try {
      if (helpers != 0) {
        const SignalsBlocked blocked;
        const std::scoped_lock creating(thread_creation());
        for (std::size_t i = 0; i < helpers; ++i) threads.emplace_back(help);
      }
      work();
      std::unique_lock lock(mutex);
      while (!helper_finished.wait_for(lock, kMinCheckInterval, [&] { return running == 0; })) {
        lock.unlock();
        check_interruption();
        lock.lock();
      }
    } catch (...) {
      owner_failure = std::current_exception();
      relay.stop();
    }
  }
  if (owner_failure) std::rethrow_exception(owner_failure);
  if (helper_failure) std::rethrow_exception(helper_failure);
}

void announce_exit() noexcept {
  this_thread.exits_process = true;
  is_exiting = true;
}

void begin_exit() {
  announce_exit();
  if (has_waited_for_work.exchange(true)) return;
  const auto deadline = Clock::now() + kMaxExitWait;
  while (works_of_others(Kind::uninterruptible) > 0 ||
         (works_of_others(Kind::interruptible) > 0 && Clock::now() < deadline)) {
    std::this_thread::sleep_for(1ms);
  }
}

bool is_left_behind_by_exit() noexcept { return is_exiting && !this_thread.exits_process; }

void sleep_until_exit() noexcept {
  for (const Kind kind : {Kind::interruptible, Kind::uninterruptible})
    count(this_thread, kind, -this_thread.works[static_cast<std::size_t>(kind)]);
  while (true) ::pause();
}

}  // namespace tilewright
