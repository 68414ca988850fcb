// Runs the CTAs of a cluster in turns; its barrier; deadlocks.
#include "tilewright/emulator/cluster.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "tilewright/base/error.hpp"
#include "tilewright/emulator/global_shadow.hpp"

namespace tilewright::emulator {
namespace {

/// Waits that may end with no result are ended so many times with nothing happening before it is a deadlock.
constexpr int kPatience = 8;

std::uint32_t volume(const runtime::Dim3& extent) { return extent.x * extent.y * extent.z; }

}  // namespace

Cluster::Cluster(const Launch& launch) : launch_(launch) {
  for (int rank = 0; rank < static_cast<int>(volume(launch.cluster)); ++rank) {
    ctas_.push_back(std::make_unique<Cta>(*this, rank));
  }
}

runtime::Dim3 Cluster::place_of(int rank) const {
  const auto r = static_cast<std::uint32_t>(rank);
  const runtime::Dim3& extent = launch_.cluster;
  return {r % extent.x, r / extent.x % extent.y, r / extent.x / extent.y};
}

void Cluster::start(runtime::Dim3 index) {
  index_ = index;
  // The agents of warps stay; those of mbarriers and bulk groups are made as a cluster needs them.
  std::erase_if(agents_, [](const AgentRecord& record) { return record.kind != AgentRecord::Kind::warp; });
  barrier_ = {};
  events_ = events_at_last_wake_ = 0;
  fruitless_wakes_ = 0;
  for (int rank = 0; rank < size(); ++rank) {
    const runtime::Dim3 place = place_of(rank);
    cta(rank).start({index.x * launch_.cluster.x + place.x, index.y * launch_.cluster.y + place.y,
                     index.z * launch_.cluster.z + place.z});
  }
}

bool Cluster::finished() const {
  return std::ranges::all_of(ctas_, [](const auto& each) { return each->finished(); });
}

bool Cluster::advance() {
  const bool progress = run_round();
  if (finished()) return true;
  return progress ? !polls_in_vain() : wake_waiters();
}

void Cluster::finish() const {
  for (const auto& each : ctas_) each->throw_suspicion();
}

void Cluster::fail_stuck() {
  finish();
  fail_deadlock();
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
  if (fruitless_wakes_ > kPatience) return false;
  bool any = false;
  for (const auto& each : ctas_) {
    for (const auto& warp : each->warps()) any |= warp->time_out();
  }
  return any;
}

bool Cluster::polls_in_vain() {
  for (const auto& each : ctas_) {
    for (const auto& warp : each->warps()) {
      if (warp->can_run() && warp->poll() == nullptr) return false;
    }
  }
  return !wake_waiters() && fruitless_wakes_ > kPatience;
}

// Agents ----------------------------------------------------------------------------------------------------------

Agent Cluster::new_agents(const AgentRecord& record) {
  if (2 * agents_.size() >= SharedMemory::kMaxAgents) {
    throw EmulationError(
        fmt::format("emulator: more than {} warps, mbarriers and threads with bulk groups in a cluster",
                    SharedMemory::kMaxAgents / 2));
  }
  agents_.push_back(record);
  return 2 * static_cast<Agent>(agents_.size() - 1);
}

const AgentRecord& Cluster::record_of(Agent agent) const {
  return agents_[std::min<std::size_t>(agent / 2, agents_.size() - 1)];
}

std::string Cluster::describe(const Accessor& who) const {
  const AgentRecord& record = record_of(who.agent);
  const Cta& cta = *ctas_[static_cast<std::size_t>(record.rank)];
  const std::string place = cta.describe_place(who.code);
  const std::string of_cta = size() > 1 ? fmt::format(" of CTA {}", to_string(cta.index())) : std::string();
  const auto thread = [&](int number) {
    return fmt::format("thread {}{}", to_string(cta.thread_index(number)), of_cta);
  };
  switch (record.kind) {
    case AgentRecord::Kind::mbarrier:
      return fmt::format("the asynchronous copy (to complete on the mbarrier at shared address {:#x}{}{}) at {}",
                         record.address, cta.describe_shared(record.address), of_cta, place);
    case AgentRecord::Kind::bulk_groups:
      return fmt::format("the bulk copy of {} at {}", thread(record.place), place);
    case AgentRecord::Kind::warp:
      break;
  }
  if (is_async(who.agent)) return fmt::format("the wgmma of warp {}{} at {}", record.place, of_cta, place);
  return fmt::format("{} at {}", thread(record.place * kWarpSize + static_cast<int>(who.lane)), place);
}

void Cluster::restart_clocks() {
  if (launch_.global_shadow != nullptr) launch_.global_shadow->forget();
  for (const auto& each : ctas_) each->restart_clocks();
  barrier_.gathering.clear();
  barrier_.completed.clear();
}

// Barrier ---------------------------------------------------------------------------------------------------------

void Cluster::settle_barrier() {
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
  barrier_.completed.join(barrier_.gathering);
  barrier_.gathering.clear();
  note_event();
  for (const auto& each : ctas_) {
    for (const auto& warp : each->warps()) warp->release_cluster_barrier();
  }
}

// Deadlocks -------------------------------------------------------------------------------------------------------

const Mbarrier* Cluster::mismatched_barrier(std::string& where) {
  for (const auto& each : ctas_) {
    for (const auto& [address, barrier] : each->mbarriers()) {
      if (barrier.pending != 0 || barrier.transactions == 0) continue;
      where = fmt::format("{:#x}{} of CTA {}", address, each->describe_shared(address), to_string(each->index()));
      return &barrier;
    }
  }
  return nullptr;
}

void Cluster::fail_deadlock() {
  Finding finding;
  finding.kind = FindingKind::deadlock;
  finding.detail = size() > 1 ? "no thread of the cluster can go on" : "no thread of the CTA can go on";
  for (const auto& each : ctas_) {
    for (const auto& warp : each->warps()) {
      const Poll* const poll = warp->poll();
      std::uint32_t code = poll != nullptr ? poll->code : kNone;
      Mask lanes = poll != nullptr ? poll->lanes : 0;
      for (const Path& path : warp->paths()) {
        if (code != kNone) break;
        code = path.waits_at;
        lanes = path.lanes;
      }
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
  std::string where;
  if (const Mbarrier* const barrier = mismatched_barrier(where)) {
    finding.kind = FindingKind::transaction_mismatch;
    finding.detail = fmt::format(
        "phase {} of the mbarrier at shared address {} never completes: all threads arrived, and {} bytes "
        "{},",
        barrier->phase, where, std::abs(barrier->transactions),
        barrier->transactions > 0 ? "that it expects have not come" : "came that it does not expect");
  }
  throw EmulationFinding(std::move(finding));
}

}  // namespace tilewright::emulator
