// One child process run to its end: no shell, an environment we chose, a time limit, its output captured.
#pragma once

#include <string>
#include <vector>

namespace tilewright::compile {

struct ChildProcess {
  std::vector<std::string> arguments;    // [0] is the absolute path of the program
  std::vector<std::string> environment;  // "NAME=value"
  std::string folder;                    // where it runs
  double timeout_s = 0.0;                // wall time after which it and its children are killed
};

struct ChildResult {
  int exit_code = 0;       // of a child that exited
  int signal = 0;          // that killed it; 0: it exited
  bool timed_out = false;  // we killed it
  std::string output;      // stdout and stderr in order, the first MiB
};

/// @throws Error when the program cannot be started.
ChildResult run_child(const ChildProcess& child);

}  // namespace tilewright::compile
