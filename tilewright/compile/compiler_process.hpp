// NVRTC in processes of its own. A compile that crashes, hangs or takes all memory ends one of them and not the
// program; the program can exit, fork and be interrupted while a compile is under way; and compiles run in parallel
// without NVRTC's locks. A process costs about 2 ms to start, once, and 0.2 ms a compile: docs/decisions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tilewright/compile/nvrtc_job.hpp"

namespace tilewright::compile {

/// Limits of one compile, and what the process is started with.
struct CompilerLimits {
  double timeout_s = 300.0;       // wall time
  std::int64_t memory_bytes = 0;  // of address space; 0: no limit
  std::string temporary_dir = "/tmp";
};

/// How a compile in another process ended.
struct CompilerReply {
  std::optional<NvrtcOutcome> outcome;  // nothing where the process did not live to give one
  bool timed_out = false;               // it was killed for taking too long
  int signal = 0;                       // that killed it; 0 where that is not known
  bool never_started = false;           // no process could be started here; `problem` says why
  std::string problem;
};

/// Compiles in a process that is kept for later compiles, up to one a hardware thread; it ends when it has been idle
/// for a minute, and with this process. Thread-safe. A compile that was killed, as the kernel does when memory runs
/// out, is tried once more with no other compile beside it.
/// @throws what check_interruption() throws; the process is then killed.
CompilerReply run_in_compiler_process(const NvrtcJob& job, const CompilerLimits& limits);

}  // namespace tilewright::compile
