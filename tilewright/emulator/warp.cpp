// The interpreter loop; divergence, waiting and reconvergence of paths.
#include "tilewright/emulator/warp.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/global_shadow.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::size_t kCacheLine = 64;

/// Instructions between two calls of check_interruption(). The slowest, wgmma, takes about 60 us.
constexpr std::uint32_t kUncheckedInstructions = 256;

template <class T>
void broadcast(std::byte* to, std::uint64_t bits) {
  const T value = static_cast<T>(bits);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    std::memcpy(to + static_cast<std::size_t>(lane) * sizeof(T), &value, sizeof(T));
  }
}

void fill_constant(std::byte* to, const ConstantSlot& constant) {
  switch (constant.width) {
    case 0:
      *reinterpret_cast<Mask*>(to) = static_cast<Mask>(constant.bits);
      break;
    case 1:
      broadcast<std::uint8_t>(to, constant.bits);
      break;
    case 2:
      broadcast<std::uint16_t>(to, constant.bits);
      break;
    case 4:
      broadcast<std::uint32_t>(to, constant.bits);
      break;
    default:
      broadcast<std::uint64_t>(to, constant.bits);
      break;
  }
}

/// Whether the lanes of a warp have different values, which are then those of the warp for the whole launch.
bool differs_by_lane(SpecialRegister what) {
  switch (what) {
    case SpecialRegister::tid_x:
    case SpecialRegister::tid_y:
    case SpecialRegister::tid_z:
    case SpecialRegister::laneid:
    case SpecialRegister::lanemask_eq:
    case SpecialRegister::lanemask_le:
    case SpecialRegister::lanemask_lt:
    case SpecialRegister::lanemask_ge:
    case SpecialRegister::lanemask_gt:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Warp::Free::operator()(std::byte* memory) const { std::free(memory); }

Warp::Warp(Cta& cta, int index, Agent agent, const Program& program)
    : cta_(cta), program_(program), index_(index), agent_(agent) {
  const std::size_t bytes = std::max(program.register_bytes, kCacheLine);
  registers_.reset(static_cast<std::byte*>(std::aligned_alloc(kCacheLine, bytes)));
  if (!registers_) throw std::bad_alloc();
  std::memset(registers_.get(), 0, bytes);
  const std::uint64_t rank = static_cast<std::uint64_t>(cta.rank()) << kClusterRankShift;
  for (ConstantSlot constant : program.constants) {
    if (constant.is_shared_address) constant.bits += rank;
    fill_constant(registers_.get() + constant.slot, constant);
  }
  for (const SpecialSlot& special : program.specials) {
    if (!differs_by_lane(special.what)) continue;
    auto* const values = reg<std::uint32_t>(special.slot);
    for (int lane = 0; lane < kWarpSize; ++lane) values[lane] = cta.special(special.what, index, lane);
  }
  const int threads = cta.threads() - index * kWarpSize;
  present_ = threads >= kWarpSize ? kAllLanes : (Mask{1} << threads) - 1;
  if (!cta.launch().options.check_races) return;
  // nvcc -G moves the registers of a wgmma through local memory around each use, and ptxas waits for it there.
  if (program.uses_wgmma && !cta.launch().module.is_debug) hazards_ = std::make_unique<RegisterHazards>(program);
  // They matter for warnings only, which a launch without a log does not keep.
  const bool warns = cta.launch().log != nullptr && !cta.launch().options.require_reuse_fences;
  if (program.uses_bulk_copies && warns) unused_loads_ = std::make_unique<UnusedLoads>(program);
}

void Warp::reset() {
  exited_ = 0;
  active_ = present_;
  reexecuting_ = 0;
  pc_ = 0;
  limit_ = kNone;
  steps_ = 0;
  favoured_lane_ = -1;
  paths_.clear();
  pending_copies.clear();
  std::ranges::fill(copy_groups, 0U);
  std::ranges::fill(cluster_arrivals, 0U);
  std::ranges::fill(cluster_waits, 0U);
  bulk_groups.clear();
  register_counts.clear();
  wgmma = {};
  clocks.clear();
  clocks.ordered[agent_] = 1;
  if (unused_loads_) {
    unused_loads_->reset();
    unused_loads_->update(*this);
  }
  if (GlobalShadow* const shadow = cta_.launch().global_shadow) shadow->start(*this);
  released.clear();
  poll_ = {};
  clock_poll_ = {};
  timed_out_ = 0;
  if (hazards_) hazards_->reset();
  undefined_.reset();
  watched_ = is_always_watched();
  for (const SpecialSlot& special : program_.specials) {
    if (!differs_by_lane(special.what)) {
      std::fill_n(reg<std::uint32_t>(special.slot), kWarpSize, cta_.special(special.what, index_, 0));
    }
  }
}

// Control ---------------------------------------------------------------------------------------------------------

Warp::State Warp::run(std::uint32_t budget) {
  budget_ = std::min(budget, kUncheckedInstructions);
  remaining_budget_ = budget - budget_;
  if (active_ == 0) limit_ = 0;
  while (true) {
    if (pc_ >= limit_ && !reschedule()) break;
    const Instruction& instruction = program_.code[pc_];
    Mask lanes = active_;
    if (instruction.guard != kNone) lanes &= predicate(instruction.guard) ^ instruction.guard_flip;
    ++pc_;
    ++steps_;
    if (watched_) watch(instruction, lanes);
    if (lanes != 0) {
      instruction.execute(*this, instruction, lanes);
    }
    if (--budget_ == 0) {
      if (remaining_budget_ != 0) {
        check_interruption();
        budget_ = std::min(remaining_budget_, kUncheckedInstructions);
        remaining_budget_ -= budget_;
        continue;
      }
      if (!paths_.empty()) {
        // Alternate between the path with the lowest program counter and the others: a path may spin in a loop until
        // another path of the same warp has made progress.
        const auto other = std::ranges::find(paths_, Path::State::ready, &Path::state);
        const bool favour = favoured_lane_ < 0 && other != paths_.end();
        favoured_lane_ = favour ? std::countr_zero(other->lanes) : -1;
        limit_ = 0;
      }
      return State::ready;
    }
  }
  if (exited_ == present_) return State::finished;
  const bool waits = std::ranges::any_of(paths_, &Path::waits);
  if (!waits) fail_divergence(paths_.front());
  return State::blocked;
}

void Warp::watch(const Instruction& instruction, Mask lanes) {
  if (Profile* const profile = cta_.launch().profile) profile->count_instruction(code_index(instruction), active_);
  if (hazards_ && lanes != 0) hazards_->check(*this, instruction);
  if (unused_loads_ && lanes != 0) unused_loads_->step(*this, instruction);
  if (!undefined_) return;
  if (undefined_->any()) {
    undefined_->step(*this, instruction, lanes, active_);
  } else {
    watched_ = is_always_watched();
  }
}

bool Warp::is_always_watched() const {
  return hazards_ != nullptr || unused_loads_ != nullptr || cta_.launch().profile != nullptr;
}

UndefinedValues& Warp::track_undefined_values() {
  if (!undefined_) undefined_ = std::make_unique<UndefinedValues>(program_);
  watched_ = true;
  return *undefined_;
}

bool Warp::reschedule() {
  if (active_ != 0) paths_.push_back({.pc = pc_, .lanes = active_});
  active_ = 0;
  std::ranges::sort(paths_, {}, &Path::pc);
  // Paths at the same instruction reconverge if one of them is ready; suspended ones wait for a ready one to arrive.
  for (std::size_t i = 0; i + 1 < paths_.size();) {
    Path& path = paths_[i];
    const Path& next = paths_[i + 1];
    const bool joins = path.pc == next.pc && !path.waits() && !next.waits() &&
                       (path.state == Path::State::ready || next.state == Path::State::ready);
    if (!joins) {
      ++i;
      continue;
    }
    path.lanes |= next.lanes;
    path.state = Path::State::ready;
    paths_.erase(paths_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  auto chosen = paths_.end();
  for (auto path = paths_.begin(); path != paths_.end(); ++path) {
    if (path->state != Path::State::ready) continue;
    if (chosen == paths_.end()) chosen = path;
    if (favoured_lane_ >= 0 && ((path->lanes >> favoured_lane_) & 1) != 0) chosen = path;
  }
  if (chosen == paths_.end()) {
    limit_ = 0;
    return false;
  }
  pc_ = chosen->pc;
  active_ = chosen->lanes;
  paths_.erase(chosen);
  // The running path must stop where it can meet another one.
  limit_ = kNone;
  for (const Path& path : paths_) {
    if (!path.waits() && path.pc > pc_) limit_ = std::min(limit_, path.pc);
  }
  return true;
}

void Warp::branch(Mask lanes, std::uint32_t target) {
  if (lanes == active_) {
    pc_ = target;
    if (!paths_.empty()) limit_ = 0;
    return;
  }
  paths_.push_back({.pc = target, .lanes = lanes});
  active_ &= ~lanes;
  limit_ = 0;
}

void Warp::exit(Mask lanes) {
  exited_ |= lanes;
  active_ &= ~lanes;
  if (active_ == 0) limit_ = 0;
  // A warp-wide instruction may have waited for these lanes: it is executed again, to check for them.
  for (Path& path : paths_) {
    if (path.state == Path::State::converging) path.state = Path::State::ready;
  }
  cta_.release_warpgroup(index_);
  cta_.complete_barriers_without_exited();
  cta_.cluster().note_event();
  cta_.cluster().try_complete_barrier();
}

bool Warp::converge(const Instruction& instruction, Mask lanes, Mask required) {
  if ((required & ~lanes) == 0) return true;
  if ((required & exited_) != 0) {
    const Mask gone = required & exited_;
    fail(FindingKind::barrier_divergence, instruction, std::countr_zero(lanes), 0,
         fmt::format("{} reached a warp-wide instruction that {}, which have exited, must also execute",
                     describe_lanes(lanes), describe_lanes(gone)));
  }
  paths_.push_back({.pc = pc_ - 1, .lanes = lanes, .state = Path::State::converging, .waits_at = pc_ - 1});
  active_ &= ~lanes;
  limit_ = 0;
  return false;
}

bool Warp::is_reexecuting(Mask lanes) {
  if ((reexecuting_ & lanes) == 0) return false;
  reexecuting_ &= ~lanes;
  return true;
}

void Warp::wait_at_barrier(const Instruction& instruction, Mask lanes, int barrier, bool reexecute) {
  if (reexecute) reexecuting_ |= lanes;
  Path path{.pc = reexecute ? pc_ - 1 : pc_, .lanes = lanes, .state = Path::State::at_barrier};
  path.waits_at = code_index(instruction);
  path.barrier = barrier;
  suspend(path);
}

void Warp::suspend(const Path& path) {
  paths_.push_back(path);
  active_ &= ~path.lanes;
  limit_ = 0;
}

void Warp::wait_at_mbarrier(const Instruction& instruction, Mask lanes, std::uint32_t address, std::uint32_t phase) {
  Path path{.pc = pc_ - 1, .lanes = lanes, .state = Path::State::at_mbarrier};
  path.waits_at = code_index(instruction);
  path.mbarrier = address;
  path.phase = phase;
  suspend(path);
}

void Warp::wait_at_cluster_barrier(const Instruction& instruction, Mask lanes, std::uint32_t phase) {
  Path path{.pc = pc_ - 1, .lanes = lanes, .state = Path::State::at_cluster_barrier};
  path.waits_at = code_index(instruction);
  path.phase = phase;
  suspend(path);
}

void Warp::release(int barrier) {
  for (Path& path : paths_) {
    if (path.state == Path::State::at_barrier && path.barrier == barrier) path.state = Path::State::ready;
  }
  limit_ = 0;
}

void Warp::wait_for_warpgroup(const Instruction& instruction, Mask lanes) {
  Path path{.pc = pc_ - 1, .lanes = lanes, .state = Path::State::at_wgmma_wait};
  path.waits_at = code_index(instruction);
  suspend(path);
}

void Warp::release_mbarrier(std::uint32_t address) {
  for (Path& path : paths_) {
    if (path.state == Path::State::at_mbarrier && path.mbarrier == address) path.state = Path::State::ready;
  }
  limit_ = 0;
}

void Warp::release_all(Path::State state) {
  for (Path& path : paths_) {
    if (path.state == state) path.state = Path::State::ready;
  }
  limit_ = 0;
}

void Warp::release_cluster_barrier() { release_all(Path::State::at_cluster_barrier); }
void Warp::release_warpgroup() { release_all(Path::State::at_wgmma_wait); }

bool Warp::time_out() {
  bool any = false;
  for (Path& path : paths_) {
    if (path.state != Path::State::at_mbarrier) continue;
    path.state = Path::State::ready;
    timed_out_ |= path.lanes;
    any = true;
  }
  if (any) limit_ = 0;
  return any;
}

std::pair<std::uint32_t, Mask> Warp::position() const {
  if (active_ != 0) return {pc_, active_};
  if (paths_.empty()) return {kNone, 0};
  const Path& path = paths_.front();
  return {path.waits_at != kNone ? path.waits_at : path.pc, path.lanes};
}

bool Warp::can_run() const {
  return active_ != 0 || std::ranges::any_of(paths_, [](const Path& path) { return !path.waits(); });
}

bool Warp::timed_out(Mask lanes) {
  const bool any = (timed_out_ & lanes) != 0;
  timed_out_ &= ~lanes;
  return any;
}

void Warp::note_poll(const Instruction& instruction, Mask lanes, std::uint32_t address, std::uint32_t phase) {
  poll_ = Poll{code_index(instruction), lanes, 0, address, phase, steps_};
  yield();
}

void Warp::note_global_poll(const Instruction& instruction, Mask lanes, std::uint64_t address) {
  if (!cta_.launch().cooperative && cta_.launch().global_shadow == nullptr) return;
  poll_ = Poll{code_index(instruction), lanes, address, 0, 0, steps_};
  yield();
}

std::uint64_t Warp::digest_registers(std::uint64_t seed) const {
  constexpr std::uint64_t kOddMultiplier = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio, of Fibonacci hashing
  static_assert(kSlotAlignment % sizeof(std::uint64_t) == 0);
  const std::byte* const registers = registers_.get();
  for (std::size_t i = 0; i < program_.register_bytes; i += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, registers + i, sizeof word);
    seed = (std::rotl(seed, 23) ^ word) * kOddMultiplier;
  }
  return seed;
}

std::uint64_t Warp::read_clock(const Instruction& instruction, std::uint64_t now) {
  const std::uint32_t code = code_index(instruction);
  const std::uint64_t since = steps_ - clock_poll_.step;
  const bool polled = poll_.code != kNone && poll_.step >= clock_poll_.step;
  const bool again = clock_poll_.code == code && since <= (polled ? kMaxClockLoopSteps : kMaxPollLoopSteps);
  clock_poll_.code = code;
  clock_poll_.step = steps_;
  clock_poll_.reads = again ? clock_poll_.reads + 1 : 0;
  if (clock_poll_.reads > kClockPolls + kClockSkips) return clock_poll_.last;
  if (clock_poll_.reads > kClockPolls) clock_poll_.skipped += std::uint64_t{64} << (clock_poll_.reads - kClockPolls);
  return clock_poll_.last = now + clock_poll_.skipped;
}

// Happens-before --------------------------------------------------------------------------------------------------

void Warp::advance_clock() {
  if (GlobalShadow* const shadow = cta_.launch().global_shadow) shadow->advance_clock(*this);
  if (++clocks.ordered[agent_] >= SharedMemory::kClockLimit) cta_.cluster().restart_clocks();
  if (unused_loads_) unused_loads_->update(*this);
}

void Warp::fence_proxy(bool shared, bool global) {
  if (shared) clocks.proxy_fenced.join(clocks.ordered);
  if (global) clocks.grid_proxy_fenced.join(clocks.grid);
  advance_clock();
}

// Findings --------------------------------------------------------------------------------------------------------

void Warp::fail(FindingKind kind, const Instruction& instruction, int lane, std::uint64_t address, std::string detail) {
  cta_.fail(kind, code_index(instruction), index_ * kWarpSize + lane, address, std::move(detail));
}

bool Warp::is_reported(FindingKind kind, Severity severity, const Instruction& instruction) const {
  return cta_.is_reported(kind, severity, code_index(instruction));
}

void Warp::add_report(Severity severity, FindingKind kind, const Instruction& instruction, int lane,
                      std::uint64_t address, std::string detail) {
  cta_.report(severity, kind, code_index(instruction), index_ * kWarpSize + lane, address, std::move(detail));
}

void Warp::fail_divergence(const Path& path) {
  std::string detail =
      fmt::format("{} wait at a warp-wide instruction for lanes that do not reach it", describe_lanes(path.lanes));
  for (const Path& other : paths_) {
    if (&other == &path) continue;
    detail += fmt::format(", while {} wait at {}", describe_lanes(other.lanes), cta_.describe_location(other.waits_at));
  }
  if (exited_ != 0) detail += fmt::format(", while {} have exited", describe_lanes(exited_));
  cta_.fail(FindingKind::barrier_divergence, path.waits_at, index_ * kWarpSize + std::countr_zero(path.lanes), 0,
            std::move(detail));
}

std::string Warp::describe_lanes(Mask lanes) const {
  const int first = std::countr_zero(lanes);
  const int last = kWarpSize - 1 - std::countl_zero(lanes);
  const auto thread = [&](int lane) { return to_string(cta_.thread_index(index_ * kWarpSize + lane)); };
  const int count = std::popcount(lanes);
  if (count == 1) return fmt::format("thread {} of warp {}", thread(first), index_);
  if (count == last - first + 1) return fmt::format("threads {}..{} of warp {}", thread(first), thread(last), index_);
  return fmt::format("{} threads ({}, ..., {}) of warp {}", count, thread(first), thread(last), index_);
}

}  // namespace tilewright::emulator
