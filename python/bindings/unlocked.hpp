// The GIL, let go of for work of ours and taken for Python's: so that Ctrl-C ends the work, and no thread waits for the
// GIL when the interpreter goes.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "tilewright/base/interruption.hpp"

namespace tilewright::python {

/// Releases the GIL for as long as it lives; the thread is marked as doing long work. On the main thread,
/// check_interruption() runs the handlers of signals that have come, and ends the work with what one of them raises.
/// While the interpreter exits, the thread sleeps in place of taking the GIL back: before Python 3.14 it would be ended
/// there, in the middle of C++. @pre the GIL is held
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
  bool is_late_ = false;  // has been asked before
};

/// Holds the GIL for as long as it lives, to run Python that may take long: an author's, a handler's of logs. The
/// thread had the GIL, or not. The interpreter's exit waits for the end of it, for two seconds at most.
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
  ScopedInterruptCheck none_;  // Python runs handlers of signals itself
};

/// What the interpreter's exit has to call before it takes down anything.
void bind_exit(nanobind::module_& module);

}  // namespace tilewright::python
