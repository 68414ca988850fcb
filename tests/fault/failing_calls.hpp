// Makes system calls fail on request, by a seccomp filter in a child process of the test, to simulate errors that disks
// and operating systems produce rarely.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace tilewright {

/// Makes the system call `number` fail with `error` in this process from now on; this cannot be undone. If `bits` is
/// not 0, only calls whose argument number `argument` has all these bits fail (the low 32 bits are tested). False: the
/// operating system does not allow seccomp filters here.
inline bool fail_system_call(int number, int error, std::uint32_t argument = 0, std::uint32_t bits = 0) {
  constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
  const auto argument_at = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument);
  std::array<sock_filter, 7> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument_at),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Whether fail_system_call() works here; tried in a child process.
inline bool can_fail_system_calls() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(fail_system_call(SYS_getppid, EPERM) && ::syscall(SYS_getppid) == -1 && errno == EPERM ? 0 : 1);
  int status = 0;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace tilewright
