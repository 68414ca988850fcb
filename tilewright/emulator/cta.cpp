// Runs the warps of a CTA round-robin, completes its named barriers, and describes what its threads wait for.
#include "tilewright/emulator/cta.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/finding_log.hpp"

namespace tilewright::emulator {
namespace {

/// Warp instructions of a CTA after the first read that was rejected.
constexpr std::uint64_t kStepsAfterRejectedRead = std::uint64_t{1} << 24;

/// Warp instructions before the next warp runs: enough to make the switch cheap, few enough that a warp which polls
/// memory sees the write of another warp soon.
constexpr std::uint32_t kInstructionsPerTurn = 4096;

}  // namespace

Cta::Cta(Cluster& cluster, int rank)
    : cluster_(cluster),
      launch_(cluster.launch()),
      rank_(rank),
      threads_(static_cast<int>(launch_.block.x * launch_.block.y * launch_.block.z)),
      shared_(launch_.options.check_races, launch_.options.check_uninitialised, launch_.options.check_warps) {
  local_.resize(static_cast<std::size_t>(threads_) * launch_.program.local_bytes);
  if (launch_.options.check_uninitialised && launch_.options.check_warps) local_undefined_.resize(local_.size());
  const int warps = ceil_div(threads_, kWarpSize);
  for (int w = 0; w < warps; ++w) {
    const Agent agent = cluster.new_agents({AgentRecord::Kind::warp, rank, w, 0});
    warps_.push_back(std::make_unique<Warp>(*this, w, agent, launch_.program));
  }
}

void Cta::start(runtime::Dim3 index) {
  index_ = index;
  finished_ = false;
  peers_have_started_ = false;
  reset_shared_memory();
  std::ranges::fill(local_undefined_, std::uint8_t{0xff});
  barriers_.fill({});
  mbarriers_.clear();
  bulk_agents_.clear();
  remote_accesses_.clear();
  deferred_finding_.reset();
  rejected_read_ = {};
  for (const auto& warp : warps_) warp->reset();
  states_.assign(warps_.size(), Warp::State::ready);
}

bool Cta::run_warps() {
  check_interruption();
  bool progress = false;
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    if (states_[w] == Warp::State::finished) continue;
    const std::uint64_t before = warps_[w]->steps();
    states_[w] = warps_[w]->run(kInstructionsPerTurn);
    progress |= warps_[w]->steps() != before;
  }
  check_step_budget();
  if (!finished_ && std::ranges::count(states_, Warp::State::finished) == std::ssize(states_)) check_exit();
  return progress;
}

void Cta::reset_shared_memory() {
  const Program& program = launch_.program;
  shared_.reset(program.dynamic_shared_begin - kSharedBase + launch_.dynamic_shared_bytes);
  std::uint32_t end = kSharedBase;
  for (const SharedVariable& variable : program.shared_variables) {
    shared_.mark_red_zone(end, variable.begin - end);
    end = variable.begin + variable.size;
  }
  if (program.has_reserved_shared) {
    std::memset(shared_.at(kSharedBase), 0, kReservedSharedBytes);
    if (shared_.shadowed()) shared_.mark_defined(kSharedBase, kReservedSharedBytes);
  }
}

std::uint64_t Cta::steps() const {
  std::uint64_t steps = 0;
  for (const auto& warp : warps_) steps += warp->steps();
  return steps;
}

void Cta::note_rejected_read(std::uint32_t code_index) {
  if (rejected_read_.code == kNone) rejected_read_ = {code_index, steps()};
}

void Cta::check_step_budget() const {
  const std::uint64_t executed = steps();
  const std::uint64_t budget = launch_.options.steps_per_cta;
  const bool may_follow = rejected_read_.code != kNone && budget != 0;
  const bool is_endless = budget != 0 && executed > budget;
  if (!is_endless && !(may_follow && executed - rejected_read_.steps > kStepsAfterRejectedRead)) return;
  std::uint32_t code = kNone;
  int thread = 0;
  for (const auto& warp : warps_) {
    if (code != kNone) break;
    const auto [next, lanes] = warp->position();
    code = next;
    thread = warp->index() * kWarpSize + std::countr_zero(lanes | Mask{1} << 31);
  }
  Finding finding = make_finding(
      FindingKind::no_progress, code, thread, 0,
      is_endless
          ? fmt::format(
                "the CTA has executed {} warp instructions, over its budget of {}: it loops forever, or needs a larger "
                "budget ({})",
                executed, budget, launch_.options.steps_setting)
          : fmt::format("the CTA has executed {} warp instructions after a read of memory that it must not access, at "
                        "{}, which "
                        "gave ones: a loop may depend on that value. On a GPU the launch ends at the read",
                        executed - rejected_read_.steps, describe_location(rejected_read_.code)));
  constexpr std::size_t kMostNotes = 8;
  for (const auto& warp : warps_) {
    const auto [next, lanes] = warp->position();
    if (next == kNone || finding.notes.size() >= kMostNotes) continue;
    finding.notes.push_back(fmt::format("{} {} at {}", warp->describe_lanes(lanes),
                                        std::has_single_bit(lanes) ? "is" : "are", describe_location(next)));
  }
  throw EmulationFinding(std::move(finding));
}

// Barriers --------------------------------------------------------------------------------------------------------

void Cta::arrive(Warp& warp, const Instruction& instruction, Mask lanes, int barrier, std::uint32_t expected,
                 BarrierOperation operation) {
  Barrier& b = barriers_[static_cast<std::size_t>(barrier)];
  const bool has_count = expected != 0;
  const std::uint32_t count = has_count ? expected : static_cast<std::uint32_t>(threads_);
  if (b.expected != 0 && b.expected != count) {
    warp.fail(FindingKind::barrier_divergence, instruction, std::countr_zero(lanes), 0,
              fmt::format("arrival at barrier {} with a thread count of {}, but the phase's first arrival gave {}",
                          barrier, count, b.expected));
  }
  b.expected = count;
  b.has_count = has_count;
  // A barrier with a thread count counts whole warps, even the last one of a block that is not a multiple of 32.
  const bool is_whole = lanes == (warp.present() & ~warp.exited());
  b.arrived += has_count && is_whole ? kWarpSize : static_cast<std::uint32_t>(std::popcount(lanes));
  b.arrival_clocks.join(warp.clocks);
  b.arrival_released.join(warp.released);
  warp.advance_clock();
  cluster_.note_event();
  if (operation != BarrierOperation::arrive) {
    warp.wait_at_barrier(instruction, lanes, barrier, operation == BarrierOperation::red);
  }
  if (b.arrived > b.expected) {
    warp.fail(
        FindingKind::barrier_divergence, instruction, std::countr_zero(lanes), 0,
        fmt::format("{} threads have arrived at barrier {}, whose thread count is {}", b.arrived, barrier, b.expected));
  }
  if (b.arrived + (has_count ? 0 : exited_threads()) >= b.expected) complete_barrier(barrier);
}

std::uint32_t Cta::exited_threads() const {
  std::uint32_t exited = 0;
  for (const auto& warp : warps_) exited += static_cast<std::uint32_t>(std::popcount(warp->exited()));
  return exited;
}

void Cta::complete_barriers_without_exited() {
  for (int barrier = 0; barrier < kBarriers; ++barrier) {
    const Barrier& b = barriers_[static_cast<std::size_t>(barrier)];
    if (b.arrived != 0 && !b.has_count && b.arrived + exited_threads() >= b.expected) complete_barrier(barrier);
  }
}

void Cta::complete_barrier(int barrier) {
  report_deferred_finding();
  Barrier& b = barriers_[static_cast<std::size_t>(barrier)];
  for (const auto& warp : warps_) {
    if (!b.has_count && warp->exited() == warp->present()) b.arrival_clocks.join(warp->clocks);
  }
  for (const auto& warp : warps_) {
    const bool waits = std::ranges::any_of(warp->paths(), [&](const Path& path) {
      return path.state == Path::State::at_barrier && path.barrier == barrier;
    });
    if (!waits) continue;
    warp->clocks.join(b.arrival_clocks);
    // Fences before a barrier also cover what a thread of the CTA publishes after it.
    warp->released.join(b.arrival_released);
    warp->release(barrier);
  }
  completed_[static_cast<std::size_t>(barrier)] = b;
  b = {};
}

void Cta::restart_clocks() {
  peers_have_started_ = true;  // it is not known any longer
  shared_.restart_clocks();
  for (const auto& warp : warps_) {
    VectorClock grid = std::move(warp->clocks.grid), fenced = std::move(warp->clocks.grid_proxy_fenced);
    const bool follows_grids = warp->clocks.follows_grids;
    warp->clocks.clear();
    warp->clocks.follows_grids = follows_grids;
    warp->clocks.grid = std::move(grid);
    warp->clocks.grid_proxy_fenced = std::move(fenced);
    warp->clocks.ordered[warp->agent()] = 1;
    warp->released.clear();
  }
  for (Barrier& b : barriers_) {
    b.arrival_clocks.clear();
    b.arrival_released.clear();
  }
  for (auto& [address, barrier] : mbarriers_) {
    barrier.arrival_clocks.clear();
    barrier.completed_clocks.clear();
    barrier.initialiser.clock = 0;
    if (barrier.init_fence) barrier.init_fence = 0;
  }
  remote_accesses_.clear();
}

void Cta::complete(const PendingCopy& copy, const VectorClock& now, const Accessor& accessor) {
  std::memcpy(shared_.at(copy.to), copy.data, copy.bytes);
  if (!shared_.shadowed()) return;
  shared_.complete_copy(now, accessor, copy.to, copy.bytes);
  if (!copy.has_undefined) return;
  for (std::uint32_t i = 0; i < copy.bytes; ++i) {
    if (copy.undefined[i] != 0) shared_.mark_undefined_bits(copy.to + i, copy.undefined[i]);
  }
}

void Cta::release_mbarrier(std::uint32_t address) {
  for (const auto& warp : warps_) warp->release_mbarrier(address);
}

std::span<const std::unique_ptr<Warp>> Cta::warpgroup(int warp) const {
  const std::size_t first = static_cast<std::size_t>(warp) / kWarpsPerWarpgroup * kWarpsPerWarpgroup;
  return std::span(warps_).subspan(first, std::min(kWarpsPerWarpgroup, warps_.size() - first));
}

void Cta::release_warpgroup(int warp) {
  for (const auto& each : warpgroup(warp)) each->release_warpgroup();
}

Agent Cta::bulk_agent(int thread) {
  const auto [entry, inserted] = bulk_agents_.try_emplace(thread, 0);
  if (inserted) entry->second = cluster_.new_agents({AgentRecord::Kind::bulk_groups, rank_, thread, 0});
  return entry->second;
}

// Exit ------------------------------------------------------------------------------------------------------------

bool Cta::has_started(const Cta& peer, const VectorClock& now) const {
  // The clock of a warp is 1 when it starts.
  return peers_have_started_ ||
         std::ranges::any_of(peer.warps_, [&](const auto& warp) { return now[warp->agent()] != 0; });
}

void Cta::note_remote_access(const VectorClock& now, const Accessor& accessor) {
  Accessor& last = remote_accesses_[accessor.agent];
  last = accessor;
  if (last.clock == 0) last.clock = now[accessor.agent];
}

void Cta::check_exit() {
  finished_ = true;
  cluster_.note_event();
  check_warpgroups();
  if (!launch_.options.check_races) return;
  check_bulk_groups();
  VectorClock known;
  for (const auto& warp : warps_) known.join(warp->clocks.ordered);
  for (const auto& [agent, access] : remote_accesses_) {
    if (access.clock <= known[agent]) continue;
    report(
        Severity::error, FindingKind::exited_cta_access, access.code, 0, 0,
        fmt::format("the CTA exits while its shared memory may be in use by {}: no wait of this CTA is ordered after "
                    "that access",
                    cluster_.describe(access)));
  }
}

void Cta::check_warpgroups() const {
  for (std::size_t first = 0; first < warps_.size(); first += kWarpsPerWarpgroup) {
    const std::size_t last = std::min(first + kWarpsPerWarpgroup, warps_.size()) - 1;
    const auto thread = static_cast<int>(first) * kWarpSize;
    for (std::size_t w = first + 1; w <= last; ++w) {
      if (warps_[w]->wgmma.mma_count != warps_[first]->wgmma.mma_count) {
        fail(FindingKind::barrier_divergence, kNone, thread, 0,
             fmt::format("warps {} and {} of one warpgroup have executed {} and {} wgmma.mma_async", first, w,
                         warps_[first]->wgmma.mma_count, warps_[w]->wgmma.mma_count));
      }
      if (warps_[w]->register_counts != warps_[first]->register_counts) {
        fail(FindingKind::barrier_divergence, kNone, thread, 0,
             fmt::format("warps {} and {} of one warpgroup have executed different setmaxnreg ({} and {} of them)",
                         first, w, warps_[first]->register_counts.size(), warps_[w]->register_counts.size()));
      }
    }
  }
}

void Cta::check_bulk_groups() {
  for (const auto& warp : warps_) {
    for (std::size_t lane = 0; lane < warp->bulk_groups.size(); ++lane) {
      const BulkGroups& groups = warp->bulk_groups[lane];
      if (groups.read == groups.committed && !groups.open) continue;
      report(
          Severity::error, FindingKind::exited_cta_access, groups.code,
          warp->index() * kWarpSize + static_cast<int>(lane), 0,
          fmt::format("the CTA exits while {} bulk groups may still read its shared memory: cp.async.bulk.wait_group "
                      "is missing",
                      groups.committed - groups.read + (groups.open ? 1 : 0)));
    }
  }
}

// Findings --------------------------------------------------------------------------------------------------------

runtime::Dim3 Cta::thread_index(int thread) const {
  const auto t = static_cast<std::uint32_t>(thread);
  const runtime::Dim3& block = launch_.block;
  return {t % block.x, t / block.x % block.y, t / block.x / block.y};
}

std::string Cta::describe_location(std::uint32_t code_index) const {
  if (code_index == kNone) return "an unknown location";
  return to_string(launch_.module.locate(*launch_.program.origins[code_index]));
}

Finding Cta::make_finding(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
                          std::string detail) const {
  Finding finding;
  finding.kind = kind;
  finding.detail = std::move(detail);
  finding.thread = ThreadLocation{index_, thread_index(thread)};
  finding.address = address;
  if (code_index != kNone) finding.location = launch_.module.locate(*launch_.program.origins[code_index]);
  return finding;
}

void Cta::fail(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
               std::string detail) const {
  Finding finding = make_finding(kind, code_index, thread, address, std::move(detail));
  if (deferred_finding_) finding.notes.push_back("before that: " + summary(deferred_finding_->finding));
  throw EmulationFinding(std::move(finding));
}

void Cta::defer_finding(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
                        std::string detail) {
  if (deferred_finding_) return;
  deferred_finding_ = Deferred{make_finding(kind, code_index, thread, address, std::move(detail)), code_index};
}

bool Cta::is_reported(FindingKind kind, Severity severity, std::uint32_t code_index) {
  if (launch_.log == nullptr) return severity == Severity::error;
  if (launch_.log->count(kind, severity, code_index, cluster_.linear_index())) return true;
  if (kind == FindingKind::shared_race) deferred_finding_.reset();
  return false;
}

void Cta::report(Severity severity, FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
                 std::string detail) {
  if (launch_.log == nullptr) fail(kind, code_index, thread, address, std::move(detail));
  Finding finding = make_finding(kind, code_index, thread, address, std::move(detail));
  finding.severity = severity;
  // Bytes that are read too early may be uninitialised because of the race.
  if (deferred_finding_ && kind == FindingKind::shared_race) {
    finding.notes.push_back("before that: " + summary(deferred_finding_->finding));
    deferred_finding_.reset();
  }
  launch_.log->add(std::move(finding), code_index, cluster_.linear_index());
}

void Cta::report_deferred_finding() {
  if (!deferred_finding_) return;
  const Deferred deferred = *std::exchange(deferred_finding_, std::nullopt);
  if (launch_.log == nullptr) throw EmulationFinding(deferred.finding);
  if (!is_reported(deferred.finding.kind, Severity::error, deferred.code)) return;
  launch_.log->add(deferred.finding, deferred.code, cluster_.linear_index());
}

std::string Cta::describe_wait(const Path& path) const {
  switch (path.state) {
    case Path::State::at_barrier: {
      const Barrier& b = barriers_[static_cast<std::size_t>(path.barrier)];
      return fmt::format("barrier {} ({} of {} threads arrived)", path.barrier, b.arrived, b.expected);
    }
    case Path::State::at_mbarrier: {
      const auto found = mbarriers_.find(path.mbarrier);
      return fmt::format("phase {} of the mbarrier at shared address {:#x}{} ({})", path.phase, path.mbarrier,
                         describe_shared(path.mbarrier),
                         found == mbarriers_.end() ? "not initialised" : describe(found->second));
    }
    case Path::State::at_cluster_barrier: {
      const ClusterBarrier& b = cluster_.barrier();
      return fmt::format("phase {} of the cluster's barrier ({} threads arrived)", b.phase, b.arrived);
    }
    case Path::State::at_wgmma_wait:
      return "the other warps of the warpgroup to commit the same wgmma group";
    default:
      return "other threads of the warp to reach the same instruction";
  }
}

void Cta::describe_waiters(std::vector<std::string>& notes) const {
  int exited = 0;
  for (const auto& warp : warps_) {
    exited += std::popcount(warp->exited());
    const auto describe = [&](Mask lanes, const std::string& event, std::uint32_t code) {
      notes.push_back(fmt::format("{} {} for {} at {}", warp->describe_lanes(lanes),
                                  std::has_single_bit(lanes) ? "waits" : "wait", event, describe_location(code)));
    };
    const auto describe_path = [&](const Path& path) { describe(path.lanes, describe_wait(path), path.waits_at); };
    const Poll* const poll = warp->poll();
    if (poll != nullptr && poll->global != 0) {
      describe(poll->lanes, fmt::format("the value at global address {:#x} to change", poll->global), poll->code);
    } else if (poll != nullptr && std::ranges::none_of(warp->paths(), [&](const Path& path) {
                 return path.waits_at == poll->code;  // is described below
               })) {
      Path path{.lanes = poll->lanes, .state = Path::State::at_mbarrier, .waits_at = poll->code};
      path.mbarrier = poll->mbarrier;
      path.phase = poll->phase;
      describe_path(path);
    }
    for (const Path& path : warp->paths()) {
      if (path.waits_at != kNone) describe_path(path);
    }
  }
  if (exited > 0) notes.push_back(fmt::format("{} threads have exited", exited));
}

std::string Cta::describe_shared(std::uint64_t address) const {
  const Program& program = launch_.program;
  const SharedVariable* below = nullptr;
  for (const SharedVariable& variable : program.shared_variables) {
    if (variable.size != 0 && variable.begin <= address) below = &variable;
  }
  if (launch_.dynamic_shared_bytes != 0 && address >= program.dynamic_shared_begin) {
    return fmt::format(" (dynamic shared memory + {})", address - program.dynamic_shared_begin);
  }
  if (below == nullptr) return {};
  const std::uint64_t offset = address - below->begin;
  if (offset < below->size) return fmt::format(" ({} + {})", below->name, offset);
  return fmt::format(" ({} bytes past the end of {}, which has {})", offset - below->size, below->name, below->size);
}

std::string Cta::describe_undefined(std::uint64_t address, std::uint32_t bytes) const {
  const std::uint32_t store = shared_.store_of_undefined(address, bytes);
  if (store == 0) return "which no thread has written";
  return fmt::format("whose value was undefined when it was stored at {}", describe_location(store));
}

// Special registers -----------------------------------------------------------------------------------------------

std::uint32_t Cta::special(SpecialRegister what, int warp, int lane) const {
  const int linear = std::min(warp * kWarpSize + lane, threads_ - 1);
  const runtime::Dim3 thread = thread_index(linear);
  const auto bit = Mask{1} << lane;
  const auto w = static_cast<std::uint32_t>(warp);
  const std::uint32_t cta = index_.x + launch_.grid.x * (index_.y + launch_.grid.y * index_.z);
  switch (what) {
    case SpecialRegister::tid_x:
      return thread.x;
    case SpecialRegister::tid_y:
      return thread.y;
    case SpecialRegister::tid_z:
      return thread.z;
    case SpecialRegister::ntid_x:
      return launch_.block.x;
    case SpecialRegister::ntid_y:
      return launch_.block.y;
    case SpecialRegister::ntid_z:
      return launch_.block.z;
    case SpecialRegister::ctaid_x:
      return index_.x;
    case SpecialRegister::ctaid_y:
      return index_.y;
    case SpecialRegister::ctaid_z:
      return index_.z;
    case SpecialRegister::nctaid_x:
      return launch_.grid.x;
    case SpecialRegister::nctaid_y:
      return launch_.grid.y;
    case SpecialRegister::nctaid_z:
      return launch_.grid.z;
    case SpecialRegister::clusterid_x:
      return cluster_.index().x;
    case SpecialRegister::clusterid_y:
      return cluster_.index().y;
    case SpecialRegister::clusterid_z:
      return cluster_.index().z;
    case SpecialRegister::nclusterid_x:
      return launch_.grid.x / launch_.cluster.x;
    case SpecialRegister::nclusterid_y:
      return launch_.grid.y / launch_.cluster.y;
    case SpecialRegister::nclusterid_z:
      return launch_.grid.z / launch_.cluster.z;
    case SpecialRegister::cluster_ctaid_x:
      return cluster_.cluster_ctaid(rank_).x;
    case SpecialRegister::cluster_ctaid_y:
      return cluster_.cluster_ctaid(rank_).y;
    case SpecialRegister::cluster_ctaid_z:
      return cluster_.cluster_ctaid(rank_).z;
    case SpecialRegister::cluster_nctaid_x:
      return launch_.cluster.x;
    case SpecialRegister::cluster_nctaid_y:
      return launch_.cluster.y;
    case SpecialRegister::cluster_nctaid_z:
      return launch_.cluster.z;
    case SpecialRegister::cluster_ctarank:
      return static_cast<std::uint32_t>(rank_);
    case SpecialRegister::cluster_nctarank:
      return static_cast<std::uint32_t>(cluster_.size());
    case SpecialRegister::is_explicit_cluster:
      return launch_.explicit_cluster ? 1 : 0;
    case SpecialRegister::gridid:
      return 0;
    case SpecialRegister::envreg1:
      return static_cast<std::uint32_t>(launch_.grid_workspace >> 32);
    case SpecialRegister::envreg2:
      return static_cast<std::uint32_t>(launch_.grid_workspace);
    case SpecialRegister::laneid:
      return static_cast<std::uint32_t>(lane);
    case SpecialRegister::warpid:
      return w;
    case SpecialRegister::nwarpid:
      return static_cast<std::uint32_t>(warps_.size());
    case SpecialRegister::smid:
      return cta % launch_.sm_count;
    case SpecialRegister::nsmid:
      return launch_.sm_count;
    case SpecialRegister::lanemask_eq:
      return bit;
    case SpecialRegister::lanemask_le:
      return bit | (bit - 1);
    case SpecialRegister::lanemask_lt:
      return bit - 1;
    case SpecialRegister::lanemask_ge:
      return ~(bit - 1);
    case SpecialRegister::lanemask_gt:
      return ~(bit | (bit - 1));
    case SpecialRegister::dynamic_smem_size:
      return launch_.dynamic_shared_bytes;
    case SpecialRegister::total_smem_size:
      return launch_.program.static_shared_bytes + launch_.dynamic_shared_bytes;
    case SpecialRegister::reserved_smem_offset_begin:
    case SpecialRegister::reserved_smem_offset_1:
      return kSharedBase;
    case SpecialRegister::reserved_smem_offset_end:
      return kSharedBase + kReservedSharedBytes;
    case SpecialRegister::reserved_smem_offset_cap:
      return kReservedSharedBytes;
  }
  return 0;
}

}  // namespace tilewright::emulator
