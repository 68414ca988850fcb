// NVRTC and MLIR in separate processes. A compile that crashes, hangs or exhausts memory kills such a process and not
// the program; the program can exit, fork and be interrupted during a compile; and compiles run in parallel without
// contending for NVRTC's locks. Starting a process takes about 2 ms, once; each compile costs 0.2 ms more than in
// process (docs/decisions).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright::compile {

/// Limits of one compile, and the temporary folder that the process uses.
struct CompilerLimits {
  double timeout_s;           // wall time
  std::int64_t memory_bytes;  // address space; 0: no limit
  std::string temporary_dir;
};

/// How a compile in another process ended.
struct CompilerReply {
  std::optional<std::string> outcome;  // the encoded outcome; empty when the process died before it replied
  bool timed_out = false;              // the process was killed at the time limit
  int signal = 0;                      // the signal that killed the process; 0 when there was none or it is unknown
  bool never_started = false;          // no process could be started; `problem` says why
  std::string problem;
};

/// Runs an encoded job in a process that is kept for later jobs. At most one idle process per hardware thread is kept;
/// it exits after a minute without a job, and when this process ends. Thread-safe. A compile killed by SIGKILL, which
/// the OOM killer sends, is retried once, after all other compiles of this process have ended.
/// @throws whatever check_interruption() throws, after killing the process.
CompilerReply run_in_compiler_process(std::string_view job, const CompilerLimits& limits);

/// Why there is no outcome. `compiler` is "NVRTC" or "MLIR".
std::string failure_of(const CompilerReply& reply, const CompilerLimits& limits, std::string_view compiler);

}  // namespace tilewright::compile
