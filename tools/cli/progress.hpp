// A line on stderr that says how far a long command is.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tilewright::cli {

/// On a terminal, one line that is redrawn, with the time that is left. Elsewhere a line for the first and the last
/// step and at most one a second. Errors of this output are ignored.
class ProgressLine {
 public:
  explicit ProgressLine(bool is_silent);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `what` is the step that was done last.
  void show(std::size_t done, std::size_t all, const std::string& what);

 private:
  using Clock = std::chrono::steady_clock;
  bool is_silent_, is_terminal_, is_drawn_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_{};
};

/// "12/40, 30 %, 1:05 left": the estimate is by the mean time of a step so far, and is left out before the first.
std::string progress_text(std::size_t done, std::size_t all, double seconds);

}  // namespace tilewright::cli
