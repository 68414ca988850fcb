#include "tools/cli/interrupt_signals.hpp"

#include <signal.h>

#include <atomic>

#include "tilewright/base/interruption.hpp"

namespace tilewright::cli {
namespace {

std::atomic<int> caught = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only write lock-free atomics");

void record_signal(int signal) {
  int none = 0;
  caught.compare_exchange_strong(none, signal);
}

}  // namespace

void catch_interrupt_signals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = record_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

int caught_signal() { return caught.load(); }

void throw_if_interrupted() {
  if (caught_signal() != 0) throw Interrupted("interrupted");
}

}  // namespace tilewright::cli
