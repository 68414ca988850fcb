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
#include "tilewright/base/fork.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::compile {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollInterval{20};  // how often the time limit and interruptions are checked

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

  pid_t spawn(const ChildProcess& child, int input, int output, bool inherits_files) {
    redirect(input, STDIN_FILENO, O_RDONLY);
    redirect(output, STDOUT_FILENO, O_WRONLY);
    ::posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    if (!inherits_files) ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    ::posix_spawn_file_actions_addchdir_np(&actions_, child.folder.c_str());
    reset_signals_and_group();
    pid_t pid = 0;
    const int failed = ::posix_spawn(&pid, child.arguments.front().c_str(), &actions_, &attributes_,
                                     pointers(child.arguments).data(), pointers(child.environment).data());
    if (failed != 0) throw Error(fmt::format("cannot start {}: {}", child.arguments.front(), std::strerror(failed)));
    return pid;
  }

 private:
  void redirect(int fd, int standard_fd, int mode) {
    if (fd < 0) {
      ::posix_spawn_file_actions_addopen(&actions_, standard_fd, "/dev/null", mode, 0);
    } else {
      ::posix_spawn_file_actions_adddup2(&actions_, fd, standard_fd);
    }
  }
  // The child gets a process group of its own, so that the processes it starts can be killed with it.
  void reset_signals_and_group() {
    sigset_t all, none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// A child whose process group is killed by the destructor unless wait_until() has seen it end.
class RunningChild {
 public:
  explicit RunningChild(pid_t pid) : pid_(pid) {}
  RunningChild(const RunningChild&) = delete;
  RunningChild& operator=(const RunningChild&) = delete;
  ~RunningChild() {
    if (pid_ > 0) kill_and_wait();
  }

  int kill_and_wait() {
    ::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  /// Waits for the exit status. False when the child still runs at the deadline: it may close its output and not exit.
  bool wait_until(Clock::time_point deadline, int& status) {
    constexpr useconds_t kPause_us = 2000;
    while (true) {
      const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended == pid_) {
        pid_ = 0;
        return true;
      }
      if (ended < 0 && errno != EINTR) throw Error(fmt::format("cannot wait for {}: {}", pid_, std::strerror(errno)));
      if (Clock::now() >= deadline) return false;
      check_interruption();
      ::usleep(kPause_us);
    }
  }

 private:
  pid_t pid_;
};

// Reads until end of file; false when the deadline passes before.
bool read_output(int fd, Clock::time_point deadline, std::string& output) {
  constexpr std::size_t kMaxOutputBytes = std::size_t{1} << 20;
  std::array<char, 1 << 16> buffer;
  while (Clock::now() < deadline) {
    check_interruption();
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(kPollInterval.count()));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) return false;
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    output.append(buffer.data(), std::min(static_cast<std::size_t>(count), kMaxOutputBytes - output.size()));
  }
  return false;
}

}  // namespace

pid_t start_child(const ChildProcess& child, int input, int output, bool inherits_files) {
  return SpawnSettings().spawn(child, input, output, inherits_files);
}

ChildResult run_child(const ChildProcess& child) {
  const LongWork work;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("cannot create a pipe: {}", std::strerror(errno)));
  const UniqueFd reader(ends[0]);
  UninheritedFd writer(ends[1]);  // a copy left open in a forked child would keep the reader from seeing end of file
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(std::min(child.timeout_s, 1e6)));
  RunningChild running(start_child(child, -1, writer.get()));
  writer.reset();

  ChildResult result;
  int status = 0;
  if (!read_output(reader.get(), deadline, result.output) || !running.wait_until(deadline, status)) {
    result.timed_out = true;
    status = running.kill_and_wait();
  }
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
  return result;
}

}  // namespace tilewright::compile
