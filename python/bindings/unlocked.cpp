#include "python/bindings/unlocked.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace nb = nanobind;

namespace tilewright::python {
namespace {

thread_local bool is_unlocked = false;  // whether an Unlocked of this thread has released the GIL

enum class IsMain : char { unknown, no, yes };
thread_local IsMain is_main = IsMain::unknown;

/// Whether this is the thread on which Python runs signal handlers: the one that started the process, or, in a child of
/// a fork, the one that forked it.
bool is_main_thread() {
  if (is_main == IsMain::unknown) {
    static const int registered = ::pthread_atfork(nullptr, nullptr, [] { is_main = IsMain::yes; });
    static_cast<void>(registered);
    is_main = ::syscall(SYS_gettid) == ::getpid() ? IsMain::yes : IsMain::no;
  }
  return is_main == IsMain::yes;
}

/// Releases the GIL if the interpreter is exiting and this thread will be left behind; returns whether an Unlocked had
/// released it before. The exit is announced by a thread that holds the GIL, so that is_left_behind_by_exit() cannot
/// change while this thread holds it.
bool release_gil_while_exiting() {
  const bool holds_gil = PyGILState_GetThisThreadState() != nullptr && !is_unlocked;
  if (holds_gil && is_left_behind_by_exit()) PyEval_SaveThread();
  return std::exchange(is_unlocked, false);
}

/// Whether this thread, which had the GIL, has lost it because Python ends the thread while the interpreter exits.
bool has_lost_gil() noexcept {
  // No part of the stable ABI, but every CPython exports it.
  static const auto check = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return PyGILState_GetThisThreadState() == nullptr || (check != nullptr && check() == 0);
}

/// Raises the exception, whose reference it takes over.
int raise_pending(void* exception) {
  const nb::object owned = nb::steal(static_cast<PyObject*>(exception));
  PyErr_SetObject(owned.type().ptr(), owned.ptr());
  return -1;
}

}  // namespace

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {
  is_unlocked = true;
  if (is_main_thread()) check_.emplace([this] { run_signal_handlers(); });
}

Unlocked::~Unlocked() {
  // The thread stays marked as doing long work until it has the GIL: begin_exit(), which releases the GIL, waits for
  // threads that passed this check before the exit was announced.
  if (is_left_behind_by_exit()) sleep_until_exit();
  PyEval_RestoreThread(state_);
  work_.end();
  is_unlocked = false;
}

// The first call does not take the GIL: the interpreter has run the handlers of earlier signals just before the work.
void Unlocked::run_signal_handlers() {
  if (!std::exchange(was_checked_, true)) return;
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
  if (PyErr_CheckSignals() != 0 || Py_MakePendingCalls() != 0) throw nb::python_error();
}

Locked::Locked() : was_unlocked_(release_gil_while_exiting()), none_({}) {}

Locked::~Locked() {
  if (is_left_behind_by_exit() && has_lost_gil()) sleep_until_exit();
  work_.end();
  is_unlocked = was_unlocked_;
}

void raise_later(nb::python_error& error, const char* where) {
  const nb::object exception = nb::borrow(error.value());
  if (is_main_thread() && Py_AddPendingCall(raise_pending, exception.ptr()) == 0) {
    exception.inc_ref();  // owned by the pending call, which cannot run before this thread runs Python code
  } else {
    error.discard_as_unraisable(where);
  }
}

void bind_exit(nb::module_& module) {
  module.def("_begin_exit", [] {
    announce_exit();
    const nb::gil_scoped_release unlocked;
    begin_exit();
  });
}

}  // namespace tilewright::python
