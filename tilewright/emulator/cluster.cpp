// Runs the CTAs of a cluster round-robin, completes its barrier, and detects deadlocks.
#include "tilewright/emulator/cluster.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/emulator/global_shadow.hpp"
#include "tilewright/emulator/written_tensor_maps.hpp"

namespace tilewright::emulator {
namespace {

/// Number of times that all try_waits are timed out, with no event in between, before a deadlock is reported. It is not
/// one if registers have changed meanwhile: the threads may count their polls, or read a clock, and give up. If they
/// never do, the budget of steps ends the launch. An unrolled loop may poll several times before it counts.
constexpr int kMaxFruitlessWakes = 32;
/// The same for threads that poll global memory in a launch that is not cooperative. No other CTA runs meanwhile.
constexpr int kMaxFruitlessPolls = 1 << 10;

std::uint32_t volume(const runtime::Dim3& extent) { return extent.x * extent.y * extent.z; }

/// The instruction at which a warp polls or waits, as an index in Program::code, and its lanes; kNone when it does
/// neither.
std::pair<std::uint32_t, Mask> waiting_position(const Warp& warp) {
  if (const Poll* const poll = warp.poll()) return {poll->code, poll->lanes};
  for (const Path& path : warp.paths()) {
    if (path.waits_at != kNone) return {path.waits_at, path.lanes};
  }
  return {kNone, 0};
}

}  // namespace

Cluster::Cluster(const Launch& launch) : launch_(launch) {
  for (int rank = 0; rank < static_cast<int>(volume(launch.cluster)); ++rank) {
    ctas_.push_back(std::make_unique<Cta>(*this, rank));
  }
}

std::uint64_t Cluster::linear_index() const {
  const std::uint64_t columns = launch_.grid.x / launch_.cluster.x;
  const std::uint64_t rows = launch_.grid.y / launch_.cluster.y;
  return index_.x + columns * (index_.y + rows * index_.z);
}

runtime::Dim3 Cluster::cluster_ctaid(int rank) const {
  const auto r = static_cast<std::uint32_t>(rank);
  const runtime::Dim3& extent = launch_.cluster;
  return {r % extent.x, r / extent.x % extent.y, r / extent.x / extent.y};
}

void Cluster::start(runtime::Dim3 index) {
  index_ = index;
  // The agents of warps are kept; those of mbarriers and bulk groups are registered at their first use.
  std::erase_if(agents_, [](const AgentRecord& record) { return record.kind != AgentRecord::Kind::warp; });
  barrier_ = {};
  leading_offsets_.clear();
  events_ = events_at_last_wake_ = 0;
  fruitless_wakes_ = fruitless_polls_ = 0;
  events_at_last_poll_ = 0;
  for (int rank = 0; rank < size(); ++rank) {
    const runtime::Dim3 ctaid = cluster_ctaid(rank);
    cta(rank).start({index.x * launch_.cluster.x + ctaid.x, index.y * launch_.cluster.y + ctaid.y,
                     index.z * launch_.cluster.z + ctaid.z});
  }
}

bool Cluster::finished() const {
  return std::ranges::all_of(ctas_, [](const auto& each) { return each->finished(); });
}

bool Cluster::advance() {
  const bool progress = run_round();
  if (finished()) return true;
  if (progress ? !polls_without_progress() : wake_waiters()) return true;
  if (launch_.cooperative || !registers_changed()) return false;
  fruitless_wakes_ = fruitless_polls_ = 0;
  ++idle_spells_;
  return true;
}

bool Cluster::polls_global() const {
  return std::ranges::any_of(ctas_, [](const auto& each) {
    return std::ranges::any_of(each->warps(), [](const auto& warp) {
      const Poll* const poll = warp->poll();
      return poll != nullptr && poll->global != 0;
    });
  });
}

void Cluster::finish() const {
  for (const auto& each : ctas_) each->report_deferred_finding();
}

void Cluster::report_deadlock(std::vector<std::string> notes) {
  finish();
  throw_deadlock(std::move(notes));
}

bool Cluster::run_round() {
  bool progress = false;
  for (const auto& each : ctas_) {
    if (!each->finished()) progress |= each->run_warps();
  }
  return progress;
}

bool Cluster::wake_waiters() {
  fruitless_wakes_ = events_ == events_at_last_wake_ ? fruitless_wakes_ + 1 : 0;
  events_at_last_wake_ = events_;
  if (fruitless_wakes_ > kMaxFruitlessWakes) return false;
  bool any = false;
  for (const auto& each : ctas_) {
    for (const auto& warp : each->warps()) any |= warp->time_out();
  }
  return any;
}

bool Cluster::polls_without_progress() {
  for (const auto& each : ctas_) {
    for (const auto& warp : each->warps()) {
      if (warp->can_run() && warp->poll() == nullptr) return false;
    }
  }
  if (launch_.global_shadow == nullptr || launch_.cooperative)
    return !wake_waiters() && fruitless_wakes_ > kMaxFruitlessWakes;
  fruitless_polls_ = events_ == events_at_last_poll_ ? fruitless_polls_ + 1 : 0;
  events_at_last_poll_ = events_;
  if (fruitless_polls_ > kMaxFruitlessPolls) return true;
  wake_waiters();
  return false;
}

bool Cluster::registers_changed() {
  std::uint64_t digest = 0;
  for (const auto& each : ctas_) {
    if (each->finished()) continue;
    for (const auto& warp : each->warps()) digest = warp->digest_registers(digest);
  }
  return std::exchange(register_digest_, digest) != digest;
}

// Agents ----------------------------------------------------------------------------------------------------------

Agent Cluster::new_agents(const AgentRecord& record) {
  if (2 * agents_.size() >= SharedMemory::kMaxAgents) {
    throw EmulationError(fmt::format(
        "emulator: the warps, mbarriers and threads with bulk groups of a cluster are more than {} in total, "
        "which is the limit of the race checks",
        SharedMemory::kMaxAgents / 2));
  }
  agents_.push_back(record);
  return 2 * static_cast<Agent>(agents_.size() - 1);
}

const AgentRecord& Cluster::record_of(Agent agent) const {
  return agents_[std::min<std::size_t>(agent / 2, agents_.size() - 1)];
}

std::string Cluster::describe(const Accessor& accessor) const {
  const AgentRecord& record = record_of(accessor.agent);
  const Cta& cta = *ctas_[static_cast<std::size_t>(record.rank)];
  const std::string location = cta.describe_location(accessor.code);
  const std::string of_cta = size() > 1 ? fmt::format(" of CTA {}", to_string(cta.index())) : std::string();
  const auto thread = [&](int number) {
    return fmt::format("thread {}{}", to_string(cta.thread_index(number)), of_cta);
  };
  switch (record.kind) {
    case AgentRecord::Kind::mbarrier:
      return fmt::format("the asynchronous copy (to complete on the mbarrier at shared address {:#x}{}{}) at {}",
                         record.address, cta.describe_shared(record.address), of_cta, location);
    case AgentRecord::Kind::bulk_groups:
      return fmt::format("the bulk copy of {} at {}", thread(record.index), location);
    case AgentRecord::Kind::warp:
      break;
  }
  if (is_async(accessor.agent)) {
    const int last = record.index + static_cast<int>(cta.warpgroup(record.index).size()) - 1;
    return fmt::format("the wgmma of warps {} to {}{} at {}", record.index, last, of_cta, location);
  }
  return fmt::format("{} at {}", thread(record.index * kWarpSize + static_cast<int>(accessor.lane)), location);
}

void Cluster::restart_clocks() {
  launch_.tensor_maps->restart_clocks();
  if (launch_.global_shadow != nullptr) launch_.global_shadow->restart_clocks();
  for (const auto& each : ctas_) each->restart_clocks();
  barrier_.arrival_clocks.clear();
  barrier_.completed_clocks.clear();
}

// Barrier ---------------------------------------------------------------------------------------------------------

void Cluster::try_complete_barrier() {
  if (barrier_.arrived == 0) return;
  std::uint32_t alive = 0;
  for (const auto& each : ctas_) {
    for (const auto& warp : each->warps()) {
      alive += static_cast<std::uint32_t>(std::popcount(warp->present() & ~warp->exited()));
    }
  }
  if (barrier_.arrived < alive) return;
  ++barrier_.phase;
  barrier_.arrived = 0;
  barrier_.completed_clocks.join(barrier_.arrival_clocks);
  barrier_.arrival_clocks.clear();
  note_event();
  for (const auto& each : ctas_) {
    for (const auto& warp : each->warps()) warp->release_cluster_barrier();
  }
}

// Deadlocks -------------------------------------------------------------------------------------------------------

const Mbarrier* Cluster::find_transaction_mismatch(std::string& where) {
  for (const auto& each : ctas_) {
    for (const auto& [address, barrier] : each->mbarriers()) {
      if (barrier.pending != 0 || barrier.transactions == 0) continue;
      where = fmt::format("{:#x}{} of CTA {}", address, each->describe_shared(address), to_string(each->index()));
      return &barrier;
    }
  }
  return nullptr;
}

void Cluster::throw_deadlock(std::vector<std::string> further_notes) {
  Finding finding;
  finding.kind = FindingKind::deadlock;
  finding.detail = size() > 1 ? "no thread of the cluster can make progress" : "no thread of the CTA can make progress";
  for (const auto& each : ctas_) {
    for (const auto& warp : each->warps()) {
      const auto [code, lanes] = waiting_position(*warp);
      if (code == kNone || finding.thread) continue;
      finding = each->make_finding(finding.kind, code, warp->index() * kWarpSize + std::countr_zero(lanes), 0,
                                   finding.detail);
    }
    std::vector<std::string> notes;
    each->describe_waiters(notes);
    for (std::string& note : notes) {
      finding.notes.push_back(size() > 1 ? fmt::format("CTA {}: {}", to_string(each->index()), note) : std::move(note));
    }
  }
  std::ranges::move(further_notes, std::back_inserter(finding.notes));
  std::string where;
  if (const Mbarrier* const barrier = find_transaction_mismatch(where)) {
    finding.kind = FindingKind::transaction_mismatch;
    finding.detail = fmt::format(
        "phase {} of the mbarrier at shared address {} never completes: no arrival is pending, but {} bytes {} arrived "
        "than were expected",
        barrier->phase, where, std::abs(barrier->transactions), barrier->transactions > 0 ? "fewer" : "more");
  }
  throw EmulationFinding(std::move(finding));
}

}  // namespace tilewright::emulator
