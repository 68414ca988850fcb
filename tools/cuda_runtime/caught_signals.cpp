#include "tools/cuda_runtime/caught_signals.hpp"

#include <atomic>

namespace tilewright::cuda_runtime {
namespace {

std::atomic<int> recorded = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only write lock-free atomics");

void record(int signal) { recorded.store(signal); }

}  // namespace

CaughtSignals::CaughtSignals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = record;
    action.sa_flags = SA_RESTART;
    if (::sigaction(signal, &action, nullptr) == 0) signals_.push_back(signal);
  }
}

CaughtSignals::~CaughtSignals() {
  for (const int signal : signals_) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
}

int CaughtSignals::caught() { return recorded.load(); }

}  // namespace tilewright::cuda_runtime
