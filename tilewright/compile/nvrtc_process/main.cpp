// The process that compiles with NVRTC and MLIR on behalf of another, so that a compile which crashes, hangs or
// exhausts memory kills this process and not the caller. Its executable is embedded in the library
// (compile/compiler_process.cpp).
//
// Standard input is a socket to the caller. For each job, the process receives a 64-bit length and the encoded NvrtcJob
// or MlirJob, answers with one byte once it has the whole job, and then sends a length and the encoded outcome. It
// exits when the caller closes the socket or dies, even during a compile, and after a minute without a job.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "tilewright/compile/job_message.hpp"
#include "tilewright/compile/mlir_job.hpp"
#include "tilewright/compile/nvrtc_job.hpp"

namespace {

constexpr int kSocket = STDIN_FILENO;
constexpr int kIdle_ms = 60'000;

// Otherwise this process would keep the caller's other files open as long as it lives.
void close_inherited_files() {
  const auto highest = ~0U;
  if (::syscall(SYS_close_range, STDERR_FILENO + 1, highest, 0U) == 0) return;
  for (int fd = STDERR_FILENO + 1; fd < 65536; ++fd) ::close(fd);  // Linux before 5.9
}

void limit_resources(const char* memory_bytes) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const rlim_t bytes = std::strtoull(memory_bytes, nullptr, 10);
  const rlimit memory{bytes, bytes};
  if (bytes != 0) ::setrlimit(RLIMIT_AS, &memory);
  // The OOM killer prefers this process to the caller.
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(file, "500", 3);
  ::close(file);
}

void exit_with_the_caller() {
  pollfd peer{kSocket, POLLRDHUP, 0};
  while (::poll(&peer, 1, -1) < 0 && errno == EINTR) {
  }
  ::_exit(0);
}

bool receive(char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::recv(kSocket, to, size, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool send(const char* from, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::send(kSocket, from, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    from += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool serve_one() {
  pollfd waiting{kSocket, POLLIN, 0};
  if (::poll(&waiting, 1, kIdle_ms) <= 0) return false;
  std::uint64_t size = 0;
  if (!receive(reinterpret_cast<char*>(&size), sizeof size) || size > tilewright::compile::kMaxMessageBytes)
    return false;
  std::string bytes(size, '\0');
  if (!receive(bytes.data(), bytes.size())) return false;
  const auto nvrtc_job = tilewright::compile::decode_job(bytes);
  const auto mlir_job = tilewright::compile::decode_mlir_job(bytes);
  const char accepted = 'a';
  if ((!nvrtc_job && !mlir_job) || !send(&accepted, 1)) return false;
  const std::string reply = nvrtc_job ? encode(run(*nvrtc_job)) : encode(run(*mlir_job));
  const std::uint64_t reply_size = reply.size();
  return send(reinterpret_cast<const char*>(&reply_size), sizeof reply_size) && send(reply.data(), reply.size());
}

}  // namespace

int main(int argc, char** argv) {
  close_inherited_files();
  limit_resources(argc > 1 ? argv[1] : "0");
  std::thread(exit_with_the_caller).detach();
  while (serve_one()) {
  }
  ::_exit(0);
}
