// How an emulated device runs its kernels.
#pragma once

#include <cstdint>

namespace tilewright::emulator {

struct EmulatorOptions {
  bool check_races = true;          // in shared memory; also accesses to bytes of a cp.async in flight
  bool check_uninitialised = true;  // reads of shared memory that nobody wrote
  int threads = 0;                  // host threads that run CTAs; 0: one a hardware thread
  std::uint64_t steps_per_cta = std::uint64_t{1} << 36;  // warp instructions after which a CTA is said to hang
  std::int64_t memory_bytes = std::int64_t{64} << 30;    // what allocate() gives out at most
};

}  // namespace tilewright::emulator
