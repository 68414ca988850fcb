#include "tilewright/base/interruption.hpp"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kBetweenChecks = 10ms;
constexpr auto kExitPatience = 2s;

thread_local std::function<void()>* current_check = nullptr;
thread_local Clock::time_point next_check{};
thread_local bool is_exiting_thread = false;

// Long works under way, by all threads and by this one.
struct WorkCount {
  int interruptible = 0;
  int uninterruptible = 0;
  int& of(LongWork::Kind kind) { return kind == LongWork::Kind::interruptible ? interruptible : uninterruptible; }
};
struct AtomicWorkCount {
  std::atomic<int> interruptible = 0;
  std::atomic<int> uninterruptible = 0;
  std::atomic<int>& of(LongWork::Kind kind) {
    return kind == LongWork::Kind::interruptible ? interruptible : uninterruptible;
  }
};
thread_local WorkCount own_work;
AtomicWorkCount all_work;
std::atomic<bool> is_exiting = false;

// The other threads' works do not exist in a forked child.
void forget_other_threads() {
  all_work.interruptible = own_work.interruptible;
  all_work.uninterruptible = own_work.uninterruptible;
  is_exiting = false;
}

void register_handlers() {
  static std::once_flag registered;
  std::call_once(registered, [] {
    ::pthread_atfork(nullptr, nullptr, forget_other_threads);
    std::atexit(begin_exit);
  });
}

}  // namespace

ScopedInterruptCheck::ScopedInterruptCheck(std::function<void()> check)
    : check_(std::move(check)), outer_(std::exchange(current_check, &check_)) {
  next_check = {};
}
ScopedInterruptCheck::~ScopedInterruptCheck() {
  current_check = outer_;
  next_check = {};
}

std::function<void()> InterruptRelay::check() const {
  return [this] {
    if (is_stopped()) throw Interrupted("interrupted: the work was ended by another thread of it");
  };
}

void check_interruption() {
  if (is_left_behind_by_exit()) sleep_until_exit();
  if (current_check == nullptr || !*current_check) return;
  const Clock::time_point now = Clock::now();
  if (now < next_check) return;
  next_check = now + kBetweenChecks;
  (*current_check)();
}

LongWork::LongWork(Kind kind) : kind_(kind) {
  register_handlers();
  ++own_work.of(kind_);
  ++all_work.of(kind_);
  if (is_left_behind_by_exit()) sleep_until_exit();
}

LongWork::~LongWork() {
  // Counted as under way until the process is gone: what follows in the caller could touch what exit() destroyed.
  if (kind_ == Kind::interruptible && is_left_behind_by_exit()) sleep_until_exit();
  --own_work.of(kind_);
  --all_work.of(kind_);
}

bool is_left_behind_by_exit() noexcept { return is_exiting.load() && !is_exiting_thread; }

void sleep_until_exit() noexcept {
  all_work.interruptible -= std::exchange(own_work.interruptible, 0);
  all_work.uninterruptible -= std::exchange(own_work.uninterruptible, 0);
  while (true) ::pause();
}

void begin_exit() {
  is_exiting_thread = true;
  if (is_exiting.exchange(true)) return;
  const auto deadline = Clock::now() + kExitPatience;
  while (all_work.uninterruptible > own_work.uninterruptible ||
         (all_work.interruptible > own_work.interruptible && Clock::now() < deadline)) {
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace tilewright
