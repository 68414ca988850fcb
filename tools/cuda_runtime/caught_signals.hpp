// SIGINT and SIGTERM during a launch: the launch ends and its findings are reported before the program ends.
#pragma once

#include <csignal>
#include <vector>

namespace tilewright::cuda_runtime {

/// Records SIGINT and SIGTERM while the object lives, in the place of their default action. Signals that the program
/// handles or ignores itself are left to it. Not reentrant.
class CaughtSignals {
 public:
  CaughtSignals();
  ~CaughtSignals();
  CaughtSignals(const CaughtSignals&) = delete;
  CaughtSignals& operator=(const CaughtSignals&) = delete;

  /// The signal that was recorded; 0 if there was none.
  static int caught();

 private:
  std::vector<int> signals_;
};

}  // namespace tilewright::cuda_runtime
