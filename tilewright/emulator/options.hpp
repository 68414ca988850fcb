// How an emulated device runs its kernels.
#pragma once

#include <cstdint>

namespace tilewright::emulator {

/// Most endless loops execute 40 to 300 million warp instructions a second, which makes half a minute to three; loops
/// over shared memory are up to 50 times slower. The longest CTAs of sound kernels need less: 128x256x2^20
/// multiply-adds take 1.4 * 10^9 warp instructions without tensor cores, 10^7 with wgmma.
inline constexpr std::uint64_t kDefaultStepsPerCta = std::uint64_t{1} << 33;

struct EmulatorOptions {
  bool check_races = true;          // in shared memory; also accesses to bytes of a cp.async in flight
  bool check_uninitialised = true;  // reads of shared memory that nobody wrote
  int threads = 0;                  // host threads that run CTAs; 0: one a hardware thread
  std::uint64_t steps_per_cta = kDefaultStepsPerCta;   // warp instructions after which a CTA is said to hang; 0: never
  std::int64_t memory_bytes = std::int64_t{64} << 30;  // what allocate() gives out at most
};

}  // namespace tilewright::emulator
