#include "python/bindings/unlocked.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace nb = nanobind;

namespace tilewright::python {
namespace {

thread_local bool is_unlocked = false;  // by an Unlocked of this thread

enum class IsMain : char { unknown, no, yes };
thread_local IsMain is_main = IsMain::unknown;

/// Python runs handlers of signals on the thread that began the process, or that forked it.
bool is_main_thread() {
  if (is_main == IsMain::unknown) {
    static const int registered = ::pthread_atfork(nullptr, nullptr, [] { is_main = IsMain::yes; });
    static_cast<void>(registered);
    is_main = ::syscall(SYS_gettid) == ::getpid() ? IsMain::yes : IsMain::no;
  }
  return is_main == IsMain::yes;
}

/// The process's exit is announced by who holds the GIL: to others that hold it, the answer does not change.
bool let_go_while_exiting() {
  const bool holds_gil = PyGILState_GetThisThreadState() != nullptr && !is_unlocked;
  if (holds_gil && is_left_behind_by_exit()) PyEval_SaveThread();
  return std::exchange(is_unlocked, false);
}

}  // namespace

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {
  is_unlocked = true;
  if (is_main_thread()) check_.emplace([this] { run_signal_handlers(); });
}

Unlocked::~Unlocked() {
  // Marked as long work until the GIL is had: begin_exit() waits, without the GIL, for who passes here before it.
  if (is_left_behind_by_exit()) sleep_until_exit();
  PyEval_RestoreThread(state_);
  work_.end();
  is_unlocked = false;
}

// The interpreter has just run the handlers of what came before the work: the first question is not worth the GIL.
void Unlocked::run_signal_handlers() {
  if (!std::exchange(is_late_, true)) return;
  struct HasGil {
    explicit HasGil(PyThreadState* state) {
      PyEval_RestoreThread(state);
      is_unlocked = false;
    }
    ~HasGil() {
      PyEval_SaveThread();
      is_unlocked = true;
    }
  } const gil(state_);
  const ScopedInterruptCheck none({});
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Locked::Locked() : was_unlocked_(let_go_while_exiting()), none_({}) {}

Locked::~Locked() {
  work_.end();  // whoever had the GIL before goes on
  is_unlocked = was_unlocked_;
}

void bind_exit(nb::module_& module) {
  module.def("_begin_exit", [] {
    announce_exit();
    const nb::gil_scoped_release unlocked;
    begin_exit();
  });
}

}  // namespace tilewright::python
