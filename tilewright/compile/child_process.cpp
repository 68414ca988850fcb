#include "tilewright/compile/child_process.hpp"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "tilewright/base/error.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::compile {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));  // posix_spawn takes char*
  list.push_back(nullptr);
  return list;
}

class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  // A group of its own, so that the compiler's own children can be killed with it.
  pid_t spawn(const ChildProcess& child, int output) {
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    ::posix_spawn_file_actions_addchdir_np(&actions_, child.folder.c_str());
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    pid_t pid = 0;
    const int failed = ::posix_spawn(&pid, child.arguments.front().c_str(), &actions_, &attributes_,
                                     pointers(child.arguments).data(), pointers(child.environment).data());
    if (failed != 0) throw Error(fmt::format("cannot start {}: {}", child.arguments.front(), std::strerror(failed)));
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

// Reads until end of file; false when the deadline came first.
bool read_output(int fd, Clock::time_point deadline, std::string& output) {
  constexpr std::size_t kMaxOutputBytes = std::size_t{1} << 20;
  std::array<char, 1 << 16> buffer;
  while (true) {
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    output.append(buffer.data(), std::min(static_cast<std::size_t>(count), kMaxOutputBytes - output.size()));
  }
}

// A child may close its output and live on; -1 as the status says that it was still running at the deadline.
int wait_until(pid_t pid, Clock::time_point deadline) {
  constexpr useconds_t kPause_us = 2000;
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) throw Error(fmt::format("cannot wait for {}: {}", pid, std::strerror(errno)));
    if (Clock::now() >= deadline) return -1;
    ::usleep(kPause_us);
  }
}

}  // namespace

ChildResult run_child(const ChildProcess& child) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(std::min(child.timeout_s, 1e6)));
  const pid_t pid = SpawnSettings().spawn(child, writer.get());
  writer.reset();

  ChildResult result;
  int status = -1;
  if (read_output(reader.get(), deadline, result.output)) status = wait_until(pid, deadline);
  if (status == -1) {
    result.timed_out = true;
    ::kill(-pid, SIGKILL);
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
  return result;
}

}  // namespace tilewright::compile
