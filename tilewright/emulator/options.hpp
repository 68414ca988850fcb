// Options of an emulated device.
#pragma once

#include <cstdint>
#include <string_view>

namespace tilewright::emulator {

/// An endless loop reaches this budget after half a minute to three minutes, as most loops execute 40 to 300 million
/// warp instructions per second (loops over shared memory up to 50 times fewer). CTAs of correct kernels stay far
/// below: a 128x256 tile with K = 2^20 takes 1.4 * 10^9 warp instructions without tensor cores, 10^7 with wgmma.
inline constexpr std::uint64_t kDefaultStepsPerCta = std::uint64_t{1} << 33;

struct EmulatorOptions {
  bool check_races = true;          // also accesses to bytes that an asynchronous copy or a wgmma has in flight
  bool check_uninitialised = true;  // reads of shared memory that no thread has written
  /// Races in global memory between threads of an ordinary launch, and reads of its uninitialised bytes. Such a launch
  /// uses one host thread and takes up to 4 times as long. Cooperative launches are checked without this option.
  bool check_global = false;
  /// Races between threads of one warp, warp masks that do not name the threads that execute the instruction, and
  /// atomic and volatile reads of uninitialised shared memory.
  bool check_warps = false;
  /// An overwrite through the async proxy of bytes that threads have accessed, with no fence.proxy.async in between, is
  /// an error. Else it is a warning, and none if the threads have used the values that they read. A bulk copy that
  /// completes on an mbarrier of its own CTA whose init no fence follows is an error, too. Else it is a warning in
  /// launches that continue after findings.
  bool require_reuse_fences = false;
  bool print_to_stderr = false;                       // where printf() of a kernel writes to: stdout otherwise
  int threads = 0;                                    // host threads that run CTAs; 0: one per hardware thread
  std::uint64_t steps_per_cta = kDefaultStepsPerCta;  // budget of warp instructions per CTA; 0: no limit
  /// The option that sets steps_per_cta, as messages name it. The text must outlive the emulator.
  std::string_view steps_setting = "TILEWRIGHT_EMULATOR_STEPS or Options::emulator_steps_per_cta; 0 removes the limit";
  std::int64_t memory_bytes = std::int64_t{64} << 30;  // size of the emulated global memory
  double progress_seconds = 0;  // after which, again and again, the log says how far a launch is; 0: never
};

}  // namespace tilewright::emulator
