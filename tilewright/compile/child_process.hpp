// Child processes: no shell, an environment and files of our choice, a time limit.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tilewright::compile {

struct ChildProcess {
  std::vector<std::string> arguments;    // [0] is the absolute path of the program
  std::vector<std::string> environment;  // "NAME=value"
  std::string folder;                    // where it runs
  double timeout_s = 0.0;                // wall time after which run_child() kills it and its children
};

struct ChildResult {
  int exit_code = 0;       // of a child that exited
  int signal = 0;          // that killed it; 0: it exited
  bool timed_out = false;  // we killed it
  std::string output;      // stdout and stderr in order, the first MiB
};

/// Starts the program in a process group of its own, which signals from the terminal do not reach, with default signal
/// handling. `input` becomes its standard input, `output` its standard output and error; negative: /dev/null.
/// It inherits no other descriptor where `inherits_files` is false.
/// @throws Error when the program cannot be started.
pid_t start_child(const ChildProcess& child, int input, int output, bool inherits_files = false);

/// Starts a program and waits for its end. Killed with its children when the time is over or the work is interrupted.
/// @throws Error when the program cannot be started; what check_interruption() throws.
ChildResult run_child(const ChildProcess& child);

}  // namespace tilewright::compile
