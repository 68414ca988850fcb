// The tensor maps in global memory that the kernels of a launch wrote, and which threads may use them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewright/emulator/access.hpp"

namespace tilewright::emulator {

/// TMA reads a tensor map through a proxy of its own, some time between the issue of a copy and its completion. So a
/// thread, or one of its CTA that it has synchronised with, must acquire a tensor map after it was written and before
/// it uses it, and no copy through the tensor map may be in flight when it is overwritten. Copies of other clusters,
/// and of thread blocks before a restart of the clocks, count as complete. The functions may be called by several host
/// threads.
class WrittenTensorMaps {
 public:
  /// A tensor map was written to `address`. @throws EmulationFinding async_read_in_flight
  void write(Warp& warp, const Instruction& in, int lane, std::uint64_t address);
  /// A lane acquires the tensor map at `address`.
  void acquire(Warp& warp, int lane, std::uint64_t address);
  /// A lane passes the tensor map at `address` to a copy. @throws EmulationFinding missing_tensor_map_fence
  void check_acquired(Warp& warp, const Instruction& in, int lane, std::uint64_t address);
  /// A copy through the tensor map at `address` is in flight until a wait for this access.
  void note_copy(Warp& warp, std::uint64_t address, const Accessor& copy);
  /// See SharedMemory::kClockLimit.
  void restart_clocks();

 private:
  using Thread = std::pair<std::uint64_t, int>;  // linear index of the CTA in the grid, and of the thread in the CTA

  using WarpOfCta = std::pair<std::uint64_t, Agent>;

  struct Written {
    std::set<Thread> acquired;                    // threads that have acquired the tensor map since it was written
    std::map<WarpOfCta, std::uint32_t> acquires;  // the clock of each warp's first, for those that synchronise with it
    std::uint64_t cluster = 0;                    // linear index of the cluster whose copies are in `copies`
    std::vector<Accessor> copies;
  };
  static Thread thread_of(Warp& warp, int lane);
  static std::uint64_t cluster_of(Warp& warp);

  std::mutex mutex_;
  std::atomic<bool> any_ = false;  // whether `written_` has an entry, so that other kernels need not lock
  std::unordered_map<std::uint64_t, Written> written_;  // by address
};

}  // namespace tilewright::emulator
