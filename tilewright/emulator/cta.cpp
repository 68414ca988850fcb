// Runs the warps of a CTA in turns; completes barriers; reports deadlocks.
#include "tilewright/emulator/cta.hpp"

#include <algorithm>
#include <bit>

#include "tilewright/base/error.hpp"

namespace tilewright::emulator {
namespace {

// Warp instructions before another warp runs: long enough to be cheap, short enough that waiting on memory ends soon.
constexpr std::uint32_t kQuantum = 4096;

}  // namespace

Cta::Cta(const Launch& launch)
    : launch_(launch),
      threads_(static_cast<int>(launch.block.x * launch.block.y * launch.block.z)),
      shared_(launch.options.check_races, launch.options.check_uninitialised) {
  local_.resize(static_cast<std::size_t>(threads_) * launch.program.local_bytes);
  const int warps = (threads_ + kWarpSize - 1) / kWarpSize;
  for (int w = 0; w < warps; ++w) warps_.push_back(std::make_unique<Warp>(*this, w, launch.program));
}

void Cta::run(runtime::Dim3 index) {
  index_ = index;
  reset_shared_memory();
  barriers_.fill({});
  suspicion_.reset();
  for (std::size_t w = 0; w < clocks_.size(); ++w) {
    clocks_[w].fill(0);
    clocks_[w][w] = 1;
  }
  for (const auto& warp : warps_) warp->reset();
  std::vector<Warp::State> states(warps_.size(), Warp::State::ready);
  for (std::size_t finished = 0; finished < warps_.size();) {
    bool progress = false;
    for (std::size_t w = 0; w < warps_.size(); ++w) {
      if (states[w] == Warp::State::finished) continue;
      const std::uint64_t before = warps_[w]->steps();
      states[w] = warps_[w]->run(kQuantum);
      progress |= warps_[w]->steps() != before;
      if (states[w] == Warp::State::finished) ++finished;
    }
    if (!progress && finished < warps_.size()) {
      throw_suspicion();
      fail_deadlock();
    }
    check_steps();
  }
  throw_suspicion();
}

void Cta::reset_shared_memory() {
  const Program& program = launch_.program;
  shared_.reset(program.dynamic_shared_begin - kSharedBase + launch_.dynamic_shared_bytes);
  std::uint32_t end = kSharedBase;
  for (const SharedVariable& variable : program.shared_variables) {
    shared_.forbid(end, variable.begin - end);
    end = variable.begin + variable.size;
  }
}

void Cta::check_steps() const {
  std::uint64_t steps = 0;
  for (const auto& warp : warps_) steps += warp->steps();
  if (steps <= launch_.options.steps_per_cta) return;
  fail(FindingKind::no_progress, kNone, 0, 0,
       fmt::format("the CTA has executed {} warp instructions without ending", steps));
}

// Barriers --------------------------------------------------------------------------------------------------------

void Cta::arrive(Warp& warp, const Instruction& instruction, Mask lanes, int barrier, std::uint32_t expected,
                 Arrival arrival) {
  Barrier& b = barriers_[static_cast<std::size_t>(barrier)];
  const bool counted = expected != 0;
  const auto all = static_cast<std::uint32_t>(threads_);
  const std::uint32_t wanted = counted ? expected : all;
  if (b.expected != 0 && b.expected != wanted) {
    warp.fail(
        FindingKind::barrier_divergence, instruction, std::countr_zero(lanes), 0,
        fmt::format("arrival at barrier {} for {} threads, in a phase begun for {}", barrier, wanted, b.expected));
  }
  b.expected = wanted;
  // A barrier with a count counts whole warps, even the last one of a block that is not a multiple of 32.
  b.arrived += counted && lanes == warp.present() ? kWarpSize : static_cast<std::uint32_t>(std::popcount(lanes));
  join(b.clock, clock(warp.index()));
  advance_clock(warp.index());
  if (arrival != Arrival::goes_on) {
    warp.wait_at_barrier(instruction, lanes, barrier, arrival == Arrival::collects);
  }
  if (b.arrived > b.expected) {
    warp.fail(FindingKind::barrier_divergence, instruction, std::countr_zero(lanes), 0,
              fmt::format("{} threads arrive at barrier {}, which expects {}", b.arrived, barrier, b.expected));
  }
  if (b.arrived == b.expected) complete(barrier);
}

void Cta::complete(int barrier) {
  throw_suspicion();
  Barrier& b = barriers_[static_cast<std::size_t>(barrier)];
  for (const auto& warp : warps_) {
    const bool waits = std::ranges::any_of(warp->paths(), [&](const Path& path) {
      return path.state == Path::State::at_barrier && path.barrier == barrier;
    });
    if (!waits) continue;
    join(clock(warp->index()), b.clock);
    warp->release(barrier);
  }
  completed_[static_cast<std::size_t>(barrier)] = b;
  b = {};
}

void Cta::advance_clock(int warp) {
  std::uint32_t& own = clock(warp)[static_cast<std::size_t>(warp)];
  if (++own < SharedMemory::kClockLimit) return;
  shared_.forget_order();
  for (std::size_t w = 0; w < clocks_.size(); ++w) {
    clocks_[w].fill(0);
    clocks_[w][w] = 1;
  }
  for (Barrier& b : barriers_) b.clock.fill(0);
}

// Findings --------------------------------------------------------------------------------------------------------

runtime::Dim3 Cta::thread_index(int thread) const {
  const auto t = static_cast<std::uint32_t>(thread);
  const runtime::Dim3& block = launch_.block;
  return {t % block.x, t / block.x % block.y, t / block.x / block.y};
}

std::string Cta::describe_place(std::uint32_t code_index) const {
  if (code_index == kNone) return "an unknown place";
  return to_string(launch_.module.place(*launch_.program.origins[code_index]));
}

Finding Cta::make_finding(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
                          std::string detail) const {
  Finding finding{kind, std::move(detail), ThreadPlace{index_, thread_index(thread)}, {}, address, {}};
  if (code_index != kNone) finding.place = launch_.module.place(*launch_.program.origins[code_index]);
  return finding;
}

void Cta::fail(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
               std::string detail) const {
  throw EmulationFinding(make_finding(kind, code_index, thread, address, std::move(detail)));
}

void Cta::suspect(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address, std::string detail) {
  if (!suspicion_) suspicion_ = make_finding(kind, code_index, thread, address, std::move(detail));
}

void Cta::throw_suspicion() const {
  if (suspicion_) throw EmulationFinding(*suspicion_);
}

void Cta::fail_deadlock() const {
  Finding finding;
  int exited = 0;
  for (const auto& warp : warps_) {
    exited += std::popcount(warp->exited());
    for (const Path& path : warp->paths()) {
      if (finding.notes.empty()) {
        finding =
            make_finding(FindingKind::deadlock, path.waits_at, warp->index() * kWarpSize + std::countr_zero(path.lanes),
                         0, "no thread of the CTA can go on");
      }
      std::string waits_for = "the other threads of the warp";
      if (path.state == Path::State::at_barrier) {
        const Barrier& b = barriers_[static_cast<std::size_t>(path.barrier)];
        waits_for = fmt::format("barrier {} ({} of {} threads arrived)", path.barrier, b.arrived, b.expected);
      }
      finding.notes.push_back(fmt::format("{} wait for {} at {}", warp->describe_lanes(path.lanes), waits_for,
                                          describe_place(path.waits_at)));
    }
  }
  if (exited > 0) finding.notes.push_back(fmt::format("{} threads have exited", exited));
  throw EmulationFinding(std::move(finding));
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
    case SpecialRegister::clusterid_x:
      return index_.x;
    case SpecialRegister::ctaid_y:
    case SpecialRegister::clusterid_y:
      return index_.y;
    case SpecialRegister::ctaid_z:
    case SpecialRegister::clusterid_z:
      return index_.z;
    case SpecialRegister::nctaid_x:
    case SpecialRegister::nclusterid_x:
      return launch_.grid.x;
    case SpecialRegister::nctaid_y:
    case SpecialRegister::nclusterid_y:
      return launch_.grid.y;
    case SpecialRegister::nctaid_z:
    case SpecialRegister::nclusterid_z:
      return launch_.grid.z;
    case SpecialRegister::cluster_ctaid:
    case SpecialRegister::cluster_ctarank:
    case SpecialRegister::is_explicit_cluster:
    case SpecialRegister::gridid:
      return 0;
    case SpecialRegister::cluster_nctaid:
    case SpecialRegister::cluster_nctarank:
      return 1;
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
  }
  return 0;
}

}  // namespace tilewright::emulator
