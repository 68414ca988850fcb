// CTAs that run together: their agents, their barrier, the shared memory of their peers.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/emulator/cta.hpp"

namespace tilewright::emulator {

/// CTAs of a cluster that a kernel may ask for at most; PTX ISA, non-portable sizes included.
inline constexpr int kMaxClusterCtas = 16;

/// Where a shared::cluster address points. Bits 24 and up are 0 in the CTA's own window, else the rank and one.
inline constexpr int kClusterRankShift = 24;
inline constexpr std::uint64_t kSharedOffsetMask = (std::uint64_t{1} << kClusterRankShift) - 1;

/// Whom a pair of agents belongs to.
struct AgentRecord {
  enum class Kind : std::uint8_t { warp, mbarrier, bulk_groups };
  Kind kind = Kind::warp;
  int rank = 0;               // of the CTA
  int place = 0;              // warp, or thread of bulk_groups
  std::uint32_t address = 0;  // of an mbarrier
};

/// All threads of the cluster that have not exited meet here.
struct ClusterBarrier {
  std::uint32_t phase = 0;
  std::uint32_t arrived = 0;
  Past gathering;
  Past completed;
};

class Cluster {
 public:
  explicit Cluster(const Launch& launch);

  // To run the cluster of an index in the grid of clusters: start, advance until finished, finish.
  void start(runtime::Dim3 index);
  bool finished() const;
  /// Lets each CTA run for a while. False when no thread can go on unless another cluster does something for it.
  /// @throws EmulationFinding
  bool advance();
  void finish() const;
  [[noreturn]] void fail_stuck();

  const Launch& launch() const { return launch_; }
  int size() const { return static_cast<int>(ctas_.size()); }
  Cta& cta(int rank) { return *ctas_[static_cast<std::size_t>(rank)]; }
  runtime::Dim3 index() const { return index_; }
  /// The CTA's coordinates in the cluster.
  runtime::Dim3 place_of(int rank) const;

  /// The first of a new pair.
  Agent new_agents(const AgentRecord& record);
  const AgentRecord& record_of(Agent agent) const;
  /// "thread (0,0,0) of CTA (1,0,0)", "the bulk copies of the mbarrier at shared address 0x400".
  std::string describe(const Accessor& who) const;

  ClusterBarrier& barrier() { return barrier_; }
  /// Completes the barrier's phase when no thread that lives is missing.
  void settle_barrier();

  /// Something happened that who waits may have waited for.
  void note_event() { ++events_; }
  /// A clock of a warp reached its limit.
  void restart_clocks();

 private:
  bool run_round();
  bool wake_waiters();
  bool polls_in_vain();
  [[noreturn]] void fail_deadlock();
  const Mbarrier* mismatched_barrier(std::string& where);

  const Launch& launch_;
  runtime::Dim3 index_;
  std::vector<std::unique_ptr<Cta>> ctas_;
  std::vector<AgentRecord> agents_;
  ClusterBarrier barrier_;
  std::uint64_t events_ = 0;
  std::uint64_t events_at_last_wake_ = 0;
  int fruitless_wakes_ = 0;
};

}  // namespace tilewright::emulator
