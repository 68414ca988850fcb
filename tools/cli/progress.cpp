#include "tools/cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tilewright/base/text.hpp"
#include "tools/cli/standard_streams.hpp"

namespace tilewright::cli {
namespace {

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

void draw(const std::string& text) {
  const std::string line = "\r\x1b[K" + text;
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
  static_cast<void>(std::fflush(stderr));
}

}  // namespace

ProgressLine::ProgressLine(bool is_silent) : is_silent_(is_silent), is_terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (is_drawn_) draw("");
}

void ProgressLine::show(std::size_t done, std::size_t all, const std::string& what) {
  if (is_silent_) return;
  const Clock::time_point now = Clock::now();
  const bool is_edge = done == 0 || done == all;
  const auto rest = is_terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(1000);
  if (!is_edge && now - last_ < rest) return;
  last_ = now;
  std::string text = progress_text(done, all, std::chrono::duration<double>(now - begin_).count());
  if (!what.empty()) text += "  " + printable(what, 400);
  if (!is_terminal_) return say(text);
  is_drawn_ = true;
  draw(text.substr(0, terminal_width() - 1));
}

std::string progress_text(std::size_t done, std::size_t all, double seconds) {
  std::string text = fmt::format("{}/{}", done, all);
  if (done == 0 || done >= all) return text;
  const auto left =
      static_cast<long long>(std::ceil(seconds / static_cast<double>(done) * static_cast<double>(all - done)));
  return text + fmt::format(", {} %, {}:{:02} left", 100 * done / all, left / 60, left % 60);
}

}  // namespace tilewright::cli
