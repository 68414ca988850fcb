// One CTA: its warps, its shared and local memory, its named barriers and its mbarriers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewright/base/target.hpp"
#include "tilewright/emulator/device_heap.hpp"
#include "tilewright/emulator/global_memory.hpp"
#include "tilewright/emulator/mbarrier.hpp"
#include "tilewright/emulator/options.hpp"
#include "tilewright/emulator/profile.hpp"
#include "tilewright/emulator/program.hpp"
#include "tilewright/emulator/shared_memory.hpp"
#include "tilewright/emulator/unwritten_bytes.hpp"
#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {

class Cluster;
class FindingLog;
class GlobalShadow;
class WrittenTensorMaps;

/// A launch: what all its CTAs share.
struct Launch {
  const Module& module;
  const Program& program;
  EmulatorOptions options;
  RegionMap regions;
  runtime::Dim3 grid;
  runtime::Dim3 block;
  runtime::Dim3 cluster;
  bool explicit_cluster = false;
  bool cooperative = false;  // all CTAs are resident, run in turn, and may wait for each other through global memory
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t sm_count = 1;
  std::vector<std::byte> parameters;
  std::uint64_t resident_ctas = 1;           // that the device runs at a time
  WrittenTensorMaps* tensor_maps = nullptr;  // never null while the launch runs
  GlobalShadow* global_shadow = nullptr;     // null unless the launch is cooperative and races are checked
  FindingLog* log = nullptr;                 // null: the launch ends at the first finding
  UnwrittenBytes* unwritten = nullptr;       // global memory that counts as uninitialised; null: none
  Footprint* footprint = nullptr;            // set at the end to what the launch accessed; null: not needed
  Footprint* early = nullptr;                // set to what it accessed before griddepcontrol.wait; null: not needed
  DeviceHeap* heap = nullptr;                // null unless the program allocates
  Profile* profile = nullptr;                // null: nothing is counted
  Target target = kSm90a;
  std::uint64_t grid_workspace = 0;  // %envreg1 and %envreg2: 8 bytes of zeros; 0 unless cooperative
};

/// The current phase of a named barrier of the CTA. Counts are of threads.
struct Barrier {
  std::uint32_t expected = 0;  // the thread count that the first arrival gave; 0 before it
  bool has_count = false;      // the arrivals gave it; else it is all threads of the CTA
  std::uint32_t arrived = 0;
  std::uint32_t votes = 0;  // bar.red: threads whose predicate holds
  Clocks arrival_clocks;
  ReleasedClocks arrival_released;  // Warp::released of the warps that have arrived
};

inline constexpr int kBarriers = 16;
inline constexpr std::size_t kWarpsPerWarpgroup = 4;

class Cta {
 public:
  Cta(Cluster& cluster, int rank);
  Cta(const Cta&) = delete;
  Cta& operator=(const Cta&) = delete;

  /// Resets all state, to run as the CTA of that index in the grid (%ctaid).
  void start(runtime::Dim3 index);
  /// Lets each warp run for a while. False when none could. @throws EmulationFinding, and as check_interruption()
  bool run_warps();
  bool finished() const { return finished_; }
  /// Reports the finding that defer_finding() kept, if any. @throws EmulationFinding unless Launch::log is set
  void report_deferred_finding();

  Cluster& cluster() { return cluster_; }
  const Launch& launch() const { return launch_; }
  int rank() const { return rank_; }
  SharedMemory& shared() { return shared_; }
  int threads() const { return threads_; }
  const std::vector<std::unique_ptr<Warp>>& warps() const { return warps_; }
  std::uint32_t special(SpecialRegister what, int warp, int lane) const;
  runtime::Dim3 index() const { return index_; }
  runtime::Dim3 thread_index(int thread) const;

  /// Start of a thread's local memory.
  std::byte* local(int thread) {
    return local_.data() + static_cast<std::size_t>(thread) * launch_.program.local_bytes;
  }

  /// Whether the thread has written none, or not all, of these bytes of its local memory. False when that is not
  /// checked.
  bool is_local_undefined(int thread, std::uint64_t address, std::uint32_t bytes) const {
    if (local_undefined_.empty()) return false;
    const auto begin = local_undefined_.begin() + local_index(thread, address);
    return std::any_of(begin, begin + bytes, [](std::uint8_t bits) { return bits != 0; });
  }
  /// The bits of the byte that the thread has not written.
  std::uint8_t local_undefined_bits(int thread, std::uint64_t address) const {
    return local_undefined_.empty() ? std::uint8_t{0} : *(local_undefined_.begin() + local_index(thread, address));
  }
  /// The thread has written these bytes, but for the bits of `undefined` in each.
  void mark_local(int thread, std::uint64_t address, std::uint32_t bytes, std::uint8_t undefined) {
    if (local_undefined_.empty()) return;
    std::fill_n(local_undefined_.begin() + local_index(thread, address), bytes, undefined);
  }

  /// bar.arrive, bar.sync, bar.red. The last two wait; red executes the instruction again to read the result.
  enum class BarrierOperation : std::uint8_t { arrive, sync, red };
  /// Threads of `warp` arrive at a named barrier; `expected` is the barrier's thread count, 0 for all threads of the
  /// CTA.
  void arrive(Warp& warp, const Instruction& instruction, Mask lanes, int barrier, std::uint32_t expected,
              BarrierOperation operation);
  /// Called when threads have exited: a barrier without a thread count does not wait for them.
  void complete_barriers_without_exited();
  Barrier& barrier(int index) { return barriers_[static_cast<std::size_t>(index)]; }
  /// The last completed phase of the barrier.
  const Barrier& completed_phase(int index) const { return completed_[static_cast<std::size_t>(index)]; }

  /// Writes the bytes of a cp.async, as an access of `accessor`.
  void complete(const PendingCopy& copy, const VectorClock& now, const Accessor& accessor);

  Mbarriers& mbarriers() { return mbarriers_; }
  /// Wakes the threads that wait for the mbarrier.
  void release_mbarrier(std::uint32_t address);
  /// All warps of the warpgroup that a warp belongs to.
  std::span<const std::unique_ptr<Warp>> warpgroup(int warp) const;
  /// Wakes the warps that wait for the other warps of this warp's warpgroup.
  void release_warpgroup(int warp);
  /// The agent pair of a thread's bulk groups.
  Agent bulk_agent(int thread);
  /// Records an access by another CTA: this CTA must not exit before it.
  /// A thread of this CTA has waited for all threads of the cluster.
  void note_cluster_barrier() { peers_have_started_ = true; }
  /// Whether a warp of this CTA with these clocks knows that the other CTA has started. What one thread knows by a
  /// barrier of the cluster, which need not order memory, counts for all.
  bool has_started(const Cta& peer, const VectorClock& now) const;
  void note_remote_access(const VectorClock& now, const Accessor& accessor);
  /// A read of bytes that the thread must not access has given ones, and the launch continues. A loop whose end depends
  /// on the value may be endless, so that the CTA has a limited number of further steps.
  void note_rejected_read(std::uint32_t code_index);

  [[noreturn]] void fail(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
                         std::string detail) const;
  /// Whether a finding is to be described, because report() will keep or throw it. Counts it if Launch::log is set.
  bool is_reported(FindingKind kind, Severity severity, std::uint32_t code_index);
  /// Keeps a finding in Launch::log and returns, or throws it without a log. @pre is_reported() was true
  void report(Severity severity, FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
              std::string detail);
  /// Keeps a finding, which is reported at the CTA's next barrier or at its end. If another finding is thrown before
  /// that, or a race is found, the deferred one becomes a note of it.
  void defer_finding(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address, std::string detail);
  std::string describe_location(std::uint32_t code_index) const;
  Finding make_finding(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
                       std::string detail) const;
  /// Appends one line for each group of waiting threads.
  void describe_waiters(std::vector<std::string>& notes) const;
  /// " (tile + 12)", or " (4 bytes past the end of tile, which has 64)".
  std::string describe_shared(std::uint64_t address) const;
  /// Why these bytes of shared memory, of which some are undefined, are so: "which no thread has written".
  std::string describe_undefined(std::uint64_t address, std::uint32_t bytes) const;

  /// See SharedMemory::kClockLimit.
  void restart_clocks();

 private:
  void reset_shared_memory();
  std::uint32_t exited_threads() const;
  void complete_barrier(int barrier);
  std::uint64_t steps() const;
  void check_step_budget() const;
  /// Checks what must hold once the last thread has exited.
  void check_exit();
  void check_warpgroups() const;
  void check_bulk_groups();
  std::string describe_wait(const Path& path) const;

  Cluster& cluster_;
  const Launch& launch_;
  int rank_ = 0;
  int threads_ = 0;
  bool finished_ = false;
  bool peers_have_started_ = false;
  runtime::Dim3 index_;
  std::vector<std::unique_ptr<Warp>> warps_;
  std::vector<Warp::State> states_;
  SharedMemory shared_;
  std::ptrdiff_t local_index(int thread, std::uint64_t address) const {
    return static_cast<std::ptrdiff_t>(static_cast<std::uint64_t>(thread) * launch_.program.local_bytes + address);
  }

  std::vector<std::byte> local_;
  std::vector<std::uint8_t> local_undefined_;  // by byte: the bits that its thread has not written; empty: not checked
  std::array<Barrier, kBarriers> barriers_{};
  std::array<Barrier, kBarriers> completed_{};
  Mbarriers mbarriers_;
  std::map<int, Agent> bulk_agents_;  // by thread
  std::map<Agent, Accessor> remote_accesses_;
  struct RejectedRead {
    std::uint32_t code = kNone;
    std::uint64_t steps = 0;  // of the CTA by then
  } rejected_read_;           // the first
  struct Deferred {
    Finding finding;
    std::uint32_t code = kNone;
  };
  std::optional<Deferred> deferred_finding_;
};

}  // namespace tilewright::emulator
