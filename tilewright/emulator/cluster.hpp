// A cluster of CTAs that run together: its barrier, its distributed shared memory, the agents that access it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/emulator/cta.hpp"

namespace tilewright::emulator {

/// Largest number of CTAs in a cluster, non-portable sizes included; CUDA C++ Programming Guide, thread block clusters.
inline constexpr int kMaxClusterCtas = 16;

/// Layout of an address in shared memory: bits 24 and up are the rank of the CTA in its cluster, as on an H100. The
/// address of a variable has the rank of the thread's own CTA.
inline constexpr int kClusterRankShift = 24;
inline constexpr std::uint64_t kSharedOffsetMask = (std::uint64_t{1} << kClusterRankShift) - 1;

/// The owner of a pair of agents.
struct AgentRecord {
  enum class Kind : std::uint8_t { warp, mbarrier, bulk_groups };
  Kind kind = Kind::warp;
  int rank = 0;               // of the CTA in the cluster
  int index = 0;              // of the warp, or of the thread that owns the bulk_groups, in the CTA
  std::uint32_t address = 0;  // of the mbarrier
};

/// barrier.cluster: counts all threads of the cluster that have not exited.
struct ClusterBarrier {
  std::uint32_t phase = 0;    // number of completed phases
  std::uint32_t arrived = 0;  // threads, in the current phase
  Clocks arrival_clocks;
  Clocks completed_clocks;
};

class Cluster {
 public:
  explicit Cluster(const Launch& launch);

  // A cluster runs by start(), then advance() until finished(), then finish().
  /// `index` is %clusterid.
  void start(runtime::Dim3 index);
  bool finished() const;
  /// Lets each CTA run for a while. False when no thread can make progress unless another cluster does.
  /// @throws EmulationFinding
  bool advance();
  /// How often threads that do nothing but poll have changed registers only, as if they counted their polls.
  std::uint64_t idle_spells() const { return idle_spells_; }
  /// Whether a thread polls global memory, which another cluster may change.
  bool polls_global() const;
  /// Reports the findings that CTAs deferred. @throws EmulationFinding unless Launch::log is set
  void finish() const;
  /// Reports the finding that a CTA deferred, and throws the deadlock, with further notes.
  [[noreturn]] void report_deadlock(std::vector<std::string> notes = {});

  const Launch& launch() const { return launch_; }
  int size() const { return static_cast<int>(ctas_.size()); }
  Cta& cta(int rank) { return *ctas_[static_cast<std::size_t>(rank)]; }
  runtime::Dim3 index() const { return index_; }
  /// The position of the cluster in the order in which the grid is run.
  std::uint64_t linear_index() const;
  /// The CTA's coordinates in the cluster: %cluster_ctaid.
  runtime::Dim3 cluster_ctaid(int rank) const;

  /// Registers a pair of agents, and returns the one of the generic proxy.
  Agent new_agents(const AgentRecord& record);
  const AgentRecord& record_of(Agent agent) const;
  /// "thread (0,0,0) of CTA (1,0,0) at ...", "the wgmma of warps 4 to 7 at ...", "the bulk copy of thread (0,0,0) at
  /// ..."
  std::string describe(const Accessor& accessor) const;

  ClusterBarrier& barrier() { return barrier_; }
  /// Completes the barrier's phase if all threads that have not exited have arrived.
  void try_complete_barrier();

  /// Records an event that waiting threads may be waiting for. Without any such event, they are in a deadlock.
  void note_event() { ++events_; }
  /// The leading offset of the descriptor in that operand of a wgmma, when the CTA of rank 0 last executed it.
  std::map<const Slot*, std::uint32_t>& leading_offsets() { return leading_offsets_; }

  /// Whether registers of threads that have not exited have changed since the last call.
  bool registers_changed();

  /// Restarts all clocks, as one has reached SharedMemory::kClockLimit.
  void restart_clocks();

 private:
  bool run_round();
  /// Times out all try_waits, unless that led to nothing the last times. False when no thread was woken.
  bool wake_waiters();
  /// Whether all threads that can run only poll, and have done so for too long.
  bool polls_without_progress();
  [[noreturn]] void throw_deadlock(std::vector<std::string> notes);
  /// An mbarrier whose arrivals are complete but whose tx-count is not zero; null when there is none.
  const Mbarrier* find_transaction_mismatch(std::string& where);

  const Launch& launch_;
  runtime::Dim3 index_;
  std::vector<std::unique_ptr<Cta>> ctas_;
  std::vector<AgentRecord> agents_;
  ClusterBarrier barrier_;
  std::map<const Slot*, std::uint32_t> leading_offsets_;
  std::uint64_t events_ = 0;
  std::uint64_t events_at_last_wake_ = 0;
  int fruitless_wakes_ = 0;
  std::uint64_t events_at_last_poll_ = 0;
  int fruitless_polls_ = 0;
  std::uint64_t idle_spells_ = 0;
  std::uint64_t register_digest_ = 0;
};

}  // namespace tilewright::emulator
