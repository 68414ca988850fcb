#include "tilewright/compile/compiler_process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/fork.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/compile/child_process.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/job_message.hpp"

// The executable of nvrtc_process/, embedded by cmake/EmbedProgram.cmake.
extern "C" const char tilewright_nvrtc_process_begin[];
extern "C" const char tilewright_nvrtc_process_end[];

namespace tilewright::compile {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPollInterval = 10ms;  // how often the time limit and interruptions are checked

/// The embedded executable as an anonymous file in memory, so that nothing has to be installed beside the library.
UniqueFd open_executable() {
  const std::string_view bytes(tilewright_nvrtc_process_begin,
                               static_cast<std::size_t>(tilewright_nvrtc_process_end - tilewright_nvrtc_process_begin));
  UniqueFd file(::memfd_create("tilewright-nvrtc", MFD_CLOEXEC));
  if (!file) throw Error(fmt::format("cannot create a file in memory: {}", std::strerror(errno)));
  write_all(file.get(), bytes, "a file in memory");
  return file;
}

/// Thrown by the socket operations: the deadline passed, or the process closed its end, as it does when it dies.
enum class ConnectionFailure { timed_out, closed };

class CompilerProcess {
 public:
  /// @throws Error when the process cannot be started.
  explicit CompilerProcess(const CompilerLimits& limits) : memory_bytes_(limits.memory_bytes) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw Error(fmt::format("cannot create a socket: {}", std::strerror(errno)));
    socket_ = UninheritedFd(ends[0]);
    const UninheritedFd theirs(ends[1]);
    const UniqueFd executable = open_executable();
    std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=" + limits.temporary_dir};
    for (const char* name : {"HOME", "LD_LIBRARY_PATH"}) {
      if (const char* value = ::secure_getenv(name)) environment.push_back(fmt::format("{}={}", name, value));
    }
    const std::string path = fmt::format("/proc/self/fd/{}", executable.get());
    const ChildProcess child{
        .arguments = {path, std::to_string(memory_bytes_)}, .environment = std::move(environment), .folder = "/"};
    // The child must inherit the descriptor that `path` names; it closes what it inherited itself.
    pid_ = start_child(child, theirs.get(), -1, /*inherits_files=*/true);
  }
  CompilerProcess(const CompilerProcess&) = delete;
  CompilerProcess& operator=(const CompilerProcess&) = delete;
  /// Kills the process, except in a forked child, where the fork has closed the socket: the process is the parent's.
  ~CompilerProcess() {
    if (pid_ <= 0 || !socket_) return;
    ::kill(pid_, SIGKILL);
    collect();
  }

  std::int64_t memory_bytes() const { return memory_bytes_; }

  /// Whether the process still has its end of the socket open.
  bool is_alive() const {
    pollfd peer{socket_.get(), POLLIN, 0};
    return socket_ && ::poll(&peer, 1, 0) == 0;
  }

  void send(std::string_view bytes, Clock::time_point deadline) {
    while (!bytes.empty()) {
      wait_for(POLLOUT, deadline);
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) throw ConnectionFailure::closed;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void receive(std::span<char> bytes, Clock::time_point deadline) {
    while (!bytes.empty()) {
      wait_for(POLLIN, deadline);
      const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) throw ConnectionFailure::closed;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  /// Waits for the exit of a process that closed its socket; returns the signal that killed it, or 0.
  int wait_for_signal() {
    const int status = collect();
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  void wait_for(short event, Clock::time_point deadline) {
    while (true) {
      check_interruption();
      pollfd peer{socket_.get(), event, 0};
      if (::poll(&peer, 1, static_cast<int>(kPollInterval.count())) > 0) return;
      if (Clock::now() >= deadline) throw ConnectionFailure::timed_out;
    }
  }

  // Returns the exit status, or 0 when the status is unknown: a program that calls wait() for any child may have
  // collected this one.
  int collect() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0) {
      if (errno != EINTR) return 0;
    }
    pid_ = 0;
    return status;
  }

  std::int64_t memory_bytes_;
  UninheritedFd socket_;
  pid_t pid_ = 0;
};

using ProcessPtr = std::unique_ptr<CompilerProcess>;

/// The idle compiler processes. Never destroyed: threads may compile while this process exits, and the compiler
/// processes exit by themselves when their socket closes.
class ProcessPool {
 public:
  static ProcessPool& instance() {
    static auto* const pool = new ProcessPool;
    return *pool;
  }

  /// An idle process with the same memory limit, else a new one. @throws Error when none can be started.
  ProcessPtr acquire(const CompilerLimits& limits) {
    while (true) {
      ProcessPtr process = pop();
      if (!process) return std::make_unique<CompilerProcess>(limits);
      if (process->is_alive() && process->memory_bytes() == limits.memory_bytes) return process;
    }
  }

  void release(ProcessPtr process) {
    const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
    const std::scoped_lock lock(mutex_);
    if (idle_.size() < most) idle_.push_back(std::move(process));
  }

  /// Counts a compile, of any thread of this process, from its construction to its destruction.
  class Running {
   public:
    Running() : generation_(fork_generation()) { count(+1); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
      if (generation_ == fork_generation()) count(-1);
    }
    bool is_alone() const {
      const std::scoped_lock lock(instance().mutex_);
      return instance().running_ == 1;
    }

   private:
    static void count(int change) {
      const std::scoped_lock lock(instance().mutex_);
      instance().drop_inherited_processes();
      instance().running_ += change;
    }
    std::uint64_t generation_;
  };

 private:
  ProcessPtr pop() {
    const std::scoped_lock lock(mutex_);
    drop_inherited_processes();
    if (idle_.empty()) return nullptr;
    ProcessPtr process = std::move(idle_.back());
    idle_.pop_back();
    return process;
  }

  // In a forked child, forgets the processes, which belong to the parent and whose sockets the fork has closed.
  void drop_inherited_processes() {
    if (std::exchange(generation_, fork_generation()) == fork_generation()) return;
    idle_.clear();
    running_ = 0;
  }

  ForkSafeMutex mutex_;  // guards what follows
  std::vector<ProcessPtr> idle_;
  int running_ = 0;
  std::uint64_t generation_ = fork_generation();
};

/// Sends the job and waits for the reply. `was_accepted` is set once the process has confirmed that it received the
/// whole job: if it dies after that, the job killed it.
CompilerReply attempt(CompilerProcess& process, std::string_view job, Clock::time_point deadline, bool& was_accepted) {
  CompilerReply reply;
  try {
    const std::uint64_t job_size = job.size();
    process.send({reinterpret_cast<const char*>(&job_size), sizeof job_size}, deadline);
    process.send(job, deadline);
    char accepted = 0;
    process.receive({&accepted, 1}, deadline);
    was_accepted = true;
    std::uint64_t size = 0;
    process.receive({reinterpret_cast<char*>(&size), sizeof size}, deadline);
    if (size > kMaxMessageBytes) throw ConnectionFailure::closed;
    std::string bytes(size, '\0');
    process.receive(bytes, deadline);
    reply.outcome = std::move(bytes);
  } catch (const ConnectionFailure broken) {
    reply.timed_out = broken == ConnectionFailure::timed_out;
    if (!reply.timed_out) reply.signal = process.wait_for_signal();
  }
  return reply;
}

/// Runs the job, in another process if the first one dies before accepting it: an idle process may reach its idle limit
/// while the job is being sent.
CompilerReply run_once(std::string_view job, const CompilerLimits& limits) {
  constexpr int kAttempts = 3;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(std::min(limits.timeout_s, 1e6)));
  CompilerReply reply;
  for (int i = 0; i < kAttempts; ++i) {
    ProcessPtr process;
    try {
      process = ProcessPool::instance().acquire(limits);
    } catch (const Error& error) {
      return {.outcome = {}, .never_started = true, .problem = error.what()};
    }
    bool was_accepted = false;
    reply = attempt(*process, job, deadline, was_accepted);
    if (reply.outcome) ProcessPool::instance().release(std::move(process));
    if (reply.outcome || reply.timed_out || was_accepted) return reply;
  }
  reply.never_started = true;
  reply.problem = reply.signal != 0 ? fmt::format("it was killed by signal {} when it started", reply.signal)
                                    : "it exited when it started";
  return reply;
}

}  // namespace

CompilerReply run_in_compiler_process(std::string_view job, const CompilerLimits& limits) {
  const LongWork work;
  const ProcessPool::Running running;
  CompilerReply reply = run_once(job, limits);
  if (reply.outcome || reply.never_started || reply.signal != SIGKILL) return reply;
  const auto deadline = Clock::now() + std::chrono::duration<double>(std::min(limits.timeout_s, 60.0));
  while (!running.is_alone() && Clock::now() < deadline) {
    check_interruption();
    std::this_thread::sleep_for(kPollInterval);
  }
  return run_once(job, limits);
}

std::string failure_of(const CompilerReply& reply, const CompilerLimits& limits, std::string_view compiler) {
  if (reply.timed_out) {
    return fmt::format("{} was killed after {} s, the limit set by TILEWRIGHT_COMPILE_TIMEOUT", compiler,
                       limits.timeout_s);
  }
  if (reply.signal == 0) return fmt::format("{}'s process ended without a result", compiler);
  return fmt::format("{}'s process was killed by signal {}: it crashed, or needed more than {} MiB of memory", compiler,
                     reply.signal, limits.memory_bytes >> 20);
}

}  // namespace tilewright::compile
