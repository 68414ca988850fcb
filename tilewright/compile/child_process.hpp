// Child processes, started without a shell, with an explicit environment, explicit files and a time limit.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tilewright::compile {

struct ChildProcess {
  std::vector<std::string> arguments;    // [0] is the absolute path of the program
  std::vector<std::string> environment;  // "NAME=value"
  std::string folder;                    // its working directory
  double timeout_s = 0.0;                // wall time after which run_child() kills the child's process group
};

struct ChildResult {
  int exit_code = 0;       // meaningful when the child exited by itself
  int signal = 0;          // the signal that killed the child; 0 when it exited
  bool timed_out = false;  // run_child() killed it at the time limit
  std::string output;      // stdout and stderr, interleaved as written; the first MiB
};

/// Starts the program with default signal handling and in a process group of its own, so that signals from the terminal
/// do not reach it. `input` becomes its standard input, `output` its standard output and error; a negative descriptor
/// stands for /dev/null. Other descriptors are inherited only if `inherits_files` is set.
/// @throws Error when the program cannot be started.
pid_t start_child(const ChildProcess& child, int input, int output, bool inherits_files = false);

/// Starts a program and waits until it ends. The child's process group is killed at the time limit and when the work is
/// interrupted.
/// @throws Error when the program cannot be started; whatever check_interruption() throws.
ChildResult run_child(const ChildProcess& child);

}  // namespace tilewright::compile
