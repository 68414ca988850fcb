// One CTA: its warps, its shared and local memory, its barriers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewright/emulator/global_memory.hpp"
#include "tilewright/emulator/mbarrier.hpp"
#include "tilewright/emulator/options.hpp"
#include "tilewright/emulator/program.hpp"
#include "tilewright/emulator/shared_memory.hpp"
#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {

class Cluster;
class GlobalShadow;

/// What all CTAs of a launch have in common.
struct Launch {
  const Module& module;
  const Program& program;
  EmulatorOptions options;
  RegionMap regions;
  runtime::Dim3 grid;
  runtime::Dim3 block;
  runtime::Dim3 cluster;
  bool explicit_cluster = false;
  bool cooperative = false;  // all CTAs run in turns, and may wait for each other through global memory
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t sm_count = 1;
  std::vector<std::byte> parameters;
  GlobalShadow* global_shadow = nullptr;  // of a cooperative launch, where races are checked
};

/// A named barrier of the CTA. Arrivals count threads.
struct Barrier {
  std::uint32_t expected = 0;  // 0: nobody has arrived in this phase
  std::uint32_t arrived = 0;
  std::uint32_t votes = 0;  // of bar.red: threads whose predicate holds
  Past past;
};

inline constexpr int kBarriers = 16;
inline constexpr std::size_t kWarpgroup = 4;  // warps

class Cta {
 public:
  Cta(Cluster& cluster, int rank);
  Cta(const Cta&) = delete;
  Cta& operator=(const Cta&) = delete;

  /// Back to the first instruction, as the CTA of that index in the grid.
  void start(runtime::Dim3 index);
  /// Lets each warp run for a while. False when none could. @throws EmulationFinding, what check_interruption() throws
  bool run_warps();
  bool finished() const { return finished_; }
  /// @throws the finding that was kept in mind
  void throw_suspicion() const;

  Cluster& cluster() { return cluster_; }
  const Launch& launch() const { return launch_; }
  int rank() const { return rank_; }
  SharedMemory& shared() { return shared_; }
  int threads() const { return threads_; }
  const std::vector<std::unique_ptr<Warp>>& warps() const { return warps_; }
  std::uint32_t special(SpecialRegister what, int warp, int lane) const;
  runtime::Dim3 index() const { return index_; }
  runtime::Dim3 thread_index(int thread) const;

  /// Where a thread's local memory starts.
  std::byte* local(int thread) {
    return local_.data() + static_cast<std::size_t>(thread) * launch_.program.local_bytes;
  }

  enum class Arrival : std::uint8_t { goes_on, waits, collects };
  /// Threads of `warp` arrive; those that wait block until the phase completes. `expected` 0 means all threads.
  void arrive(Warp& warp, const Instruction& instruction, Mask lanes, int barrier, std::uint32_t expected,
              Arrival arrival);
  Barrier& barrier(int index) { return barriers_[static_cast<std::size_t>(index)]; }
  /// Of the barrier's last completed phase.
  const Barrier& completed(int index) const { return completed_[static_cast<std::size_t>(index)]; }

  Mbarriers& mbarriers() { return mbarriers_; }
  /// Who waits for the mbarrier looks again.
  void release_mbarrier(std::uint32_t address);
  /// Warps [first, last) of the warpgroup of a warp.
  std::span<const std::unique_ptr<Warp>> warpgroup(int warp) const;
  /// Who waits for the other warps of its warpgroup looks again.
  void release_warpgroup(int warp);
  /// The agents of a thread's bulk groups.
  Agent bulk_agent(int thread);
  /// A peer touched this CTA's shared memory, which must not be gone by then.
  void note_remote_access(const VectorClock& now, const Accessor& who);

  [[noreturn]] void fail(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
                         std::string detail) const;
  /// Keeps a finding that is thrown at the next barrier or end of the CTA, unless something worse is found by then, of
  /// which it becomes a note.
  void suspect(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address, std::string detail);
  std::string describe_place(std::uint32_t code_index) const;
  Finding make_finding(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
                       std::string detail) const;
  /// One line for each group of threads that waits.
  void describe_waiters(std::vector<std::string>& notes) const;
  /// " (tile + 12)", or how far past which variable it is.
  std::string describe_shared(std::uint64_t address) const;

  /// Of clocks that restart: see SharedMemory::kClockLimit.
  void restart_clocks();

 private:
  void reset_shared_memory();
  void complete(int barrier);
  void check_steps() const;
  /// What must hold when the last thread has gone.
  void check_exit();
  void check_warpgroups() const;
  void check_bulk_groups() const;
  std::string describe_wait(const Path& path) const;

  Cluster& cluster_;
  const Launch& launch_;
  int rank_ = 0;
  int threads_ = 0;
  bool finished_ = false;
  runtime::Dim3 index_;
  std::vector<std::unique_ptr<Warp>> warps_;
  std::vector<Warp::State> states_;
  SharedMemory shared_;
  std::vector<std::byte> local_;
  std::array<Barrier, kBarriers> barriers_{};
  std::array<Barrier, kBarriers> completed_{};
  Mbarriers mbarriers_;
  std::map<int, Agent> bulk_agents_;  // by thread
  std::map<Agent, Accessor> remote_accesses_;
  std::optional<Finding> suspicion_;
};

}  // namespace tilewright::emulator
