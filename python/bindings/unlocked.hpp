// Releases the GIL around long native work and takes it for calls into Python, so that Ctrl-C interrupts the work and
// no thread waits for the GIL while the interpreter exits.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

#include "tilewright/base/interruption.hpp"

namespace tilewright::python {

/// Releases the GIL during its lifetime and marks the thread as doing long work. On the main thread,
/// check_interruption() runs the handlers of pending signals; an exception from a handler ends the work. While the
/// interpreter exits, the destructor sleeps instead of taking the GIL back, because Python before 3.14 would end the
/// thread there without running C++ destructors. @pre the GIL is held
class Unlocked {
 public:
  Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked();

 private:
  void run_signal_handlers();

  PyThreadState* state_;
  LongWork work_;
  std::optional<ScopedInterruptCheck> check_;
  bool was_checked_ = false;  // run_signal_handlers() has been called
};

/// Holds the GIL during its lifetime, for Python code that may take long, such as methods of a Python kernel or log
/// handlers. The thread may or may not hold the GIL before. The interpreter's exit waits for it, for two seconds at
/// most. After that, Python before 3.14 ends the thread when it next asks for the GIL, by unwinding its stack; the
/// destructor then sleeps instead of releasing a GIL that the thread does not hold.
class Locked {
 public:
  Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked();

 private:
  bool was_unlocked_;
  LongWork work_;
  nanobind::gil_scoped_acquire gil_;
  ScopedInterruptCheck none_;  // disables the check: the interpreter runs signal handlers itself
};

/// An exception of Python that is not an `Exception`, such as KeyboardInterrupt or SystemExit. It is no std::exception,
/// so that code that takes an exception of a kernel's methods for the failure of that kernel does not catch it.
struct PythonInterruption {
  nanobind::python_error error;
};

/// Calls methods of the program's own classes under the GIL. @throws PythonInterruption
template <class Work>
auto call_python(const Work& work) {
  const Locked gil;
  try {
    return work();
  } catch (nanobind::python_error& error) {
    if (error.matches(PyExc_Exception)) throw;
    throw PythonInterruption{std::move(error)};
  }
}

/// Raises the exception on the main thread as soon as that runs Python code or checks for signals; on another thread,
/// or if too many exceptions wait, prints it as one that cannot be raised. For exceptions that signal handlers raise
/// where they must not pass. @pre the GIL is held
void raise_later(nanobind::python_error& error, const char* where);

/// Binds _begin_exit(), which must be the first of our functions that run at the interpreter's exit.
void bind_exit(nanobind::module_& module);

}  // namespace tilewright::python
