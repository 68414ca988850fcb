#include "tools/cli/standard_streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "tilewright/base/text.hpp"
#include "tools/cli/commands.hpp"

namespace tilewright::cli {
namespace {

class WarningSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string text = printable({message.payload.data(), message.payload.size()}, 4000);
    if (shown_.size() >= kMaxTexts || !shown_.insert(text).second) return;
    say(fmt::format("{}: {}", message.level >= spdlog::level::err ? "error" : "warning", text));
  }
  void flush_() override {}

 private:
  static constexpr std::size_t kMaxTexts = 1000;
  std::set<std::string> shown_;
};

}  // namespace

void prepare_standard_streams() {
  // stdin is opened for writing and stdout for reading, so that their use fails as that of a closed stream does.
  constexpr std::array<int, 3> kModes{O_WRONLY, O_RDONLY, O_RDWR};
  for (int stream = 0; stream < 3; ++stream) {
    if (::fcntl(stream, F_GETFD) == -1) ::open("/dev/null", kModes[static_cast<std::size_t>(stream)]);
  }
  struct sigaction ignored {};
  ignored.sa_handler = [](int) {};  // child processes would inherit SIG_IGN, but not a handler
  ignored.sa_flags = SA_RESTART;
  ::sigaction(SIGPIPE, &ignored, nullptr);
}

void say(std::string_view message) {
  const std::string line = fmt::format("tilewright: {}\n", message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void show_warnings() {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("tilewright", std::make_shared<WarningSink>()));
  spdlog::set_level(spdlog::level::warn);
}

int flush_standard_output(int code, int cause) {
  const bool had_failed = std::ferror(stdout) != 0;
  errno = 0;
  const bool fails = std::fflush(stdout) != 0;
  if (code != 0 || (!fails && !had_failed)) return code;
  if (fails && errno != 0) cause = errno;
  if (cause == EPIPE) {
    ::signal(SIGPIPE, SIG_DFL);
    ::raise(SIGPIPE);
  }
  say(fmt::format("cannot write to the standard output{}{}", cause == 0 ? "" : ": ",
                  cause == 0 ? "" : std::strerror(cause)));
  return static_cast<int>(ExitCode::environment);
}

}  // namespace tilewright::cli
