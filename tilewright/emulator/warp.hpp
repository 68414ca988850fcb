// 32 threads that run a program together: registers, divergence, and the accesses they have in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/emulator/global_memory.hpp"
#include "tilewright/emulator/program.hpp"
#include "tilewright/emulator/register_hazards.hpp"
#include "tilewright/emulator/shared_memory.hpp"

namespace tilewright::emulator {

class Cta;

/// Lanes that stand at one instruction. A warp that diverged has several; it runs the one with the lowest program
/// counter, and joins those that meet.
struct Path {
  enum class State : std::uint8_t {
    ready,
    parked,              // at an instruction that needs lanes which are elsewhere
    at_barrier,          // arrived; waits for the rest of the CTA
    at_mbarrier,         // waits for a phase of it
    at_cluster_barrier,  // waits for the rest of the cluster
    at_warpgroup,        // waits for the other warps of its warpgroup to come to the same wgmma
  };
  std::uint32_t pc = 0;
  Mask lanes = 0;
  State state = State::ready;
  std::uint32_t waits_at = kNone;  // code index of the instruction it waits at
  int barrier = 0;
  std::uint32_t mbarrier = 0;  // its shared address
  std::uint32_t phase = 0;     // of it that the path waits for: the parity, or the number

  bool waits() const { return state >= State::at_barrier; }
};

/// A cp.async of one thread that is not complete.
struct PendingCopy {
  Accessor who;
  std::uint32_t group = 0;  // number of the thread's cp.async.commit_group that closes it
  std::uint64_t to = 0;     // shared address
  std::uint32_t bytes = 0;
  std::byte data[16] = {};
};

/// A test_wait that was not over when it was last asked, or a load that other CTAs' stores are waited for by: the warp
/// polls.
struct Poll {
  std::uint32_t code = kNone;
  Mask lanes = 0;
  std::uint64_t global = 0;  // what was loaded, or 0 and
  std::uint32_t mbarrier = 0;
  std::uint32_t phase = 0;
  std::uint64_t step = 0;  // of the warp
};

/// What a warp has asked of its tensor cores.
struct WgmmaGroups {
  std::uint32_t committed = 0;
  std::uint32_t retired = 0;     // of the committed, waited for
  std::uint64_t multiplies = 0;  // all four warps of a warpgroup must come to the same number

  /// The group that the next commit closes.
  std::uint32_t open() const { return committed + 1; }
};

/// The bulk copies of one thread that complete in groups.
struct BulkGroups {
  std::uint32_t committed = 0;
  std::uint32_t read = 0;  // of the committed, those whose sources were waited for
  bool open = false;       // a copy was issued since the last commit
};

class Warp {
 public:
  Warp(Cta& cta, int index, Agent agent, const Program& program);

  /// Back to the first instruction, for the CTA's present index.
  void reset();

  enum class State : std::uint8_t { ready, blocked, finished };
  /// Runs at most `budget` instructions, or until no lane can go on. Calls check_interruption() after
  /// each 256.
  State run(std::uint32_t budget);
  std::uint64_t steps() const { return steps_; }

  template <class T>
  T* reg(Slot slot) {
    return reinterpret_cast<T*>(registers_.get() + slot);
  }
  Mask predicate(Slot slot) { return *reg<Mask>(slot); }
  /// The predicate of these lanes; the others keep theirs.
  void set_predicate(Slot slot, Mask value, Mask lanes) {
    Mask& predicate = *reg<Mask>(slot);
    predicate = (predicate & ~lanes) | (value & lanes);
  }

  Cta& cta() { return cta_; }
  int index() const { return index_; }
  const Program& program() const { return program_; }
  Mask present() const { return present_; }
  Mask exited() const { return exited_; }
  const std::vector<Path>& paths() const { return paths_; }

  // For instructions that move control. Each applies to lanes of the path that runs.
  void branch(Mask lanes, std::uint32_t target);
  void exit(Mask lanes);
  /// True when all `required` lanes are in `lanes`; else parks these until the others come.
  /// @throws EmulationFinding barrier_divergence when a required lane has exited
  bool gather(const Instruction& instruction, Mask lanes, Mask required);
  /// The lanes wait at a barrier of the CTA until release(barrier); then they go on, or, when they `collect` a result,
  /// execute the instruction once more.
  void wait_at_barrier(const Instruction& instruction, Mask lanes, int barrier, bool collect);
  /// The lanes wait for a phase of an mbarrier, then execute the instruction once more.
  void wait_at_mbarrier(const Instruction& instruction, Mask lanes, std::uint32_t address, std::uint32_t phase);
  void wait_at_cluster_barrier(const Instruction& instruction, Mask lanes, std::uint32_t phase);
  void release_mbarrier(std::uint32_t address);
  void wait_at_warpgroup(const Instruction& instruction, Mask lanes);
  void release_cluster_barrier();
  void release_warpgroup();
  /// Ends every wait for an mbarrier, with no result. True when there was one.
  bool time_out();
  /// True, once, for lanes whose wait was ended so.
  bool timed_out(Mask lanes);
  /// The lanes asked for a phase that is not complete, and go on.
  void note_poll(const Instruction& instruction, Mask lanes, std::uint32_t address, std::uint32_t phase);
  /// The lanes looked at what other CTAs of a cooperative launch may change.
  void note_global_poll(const Instruction& instruction, Mask lanes, std::uint64_t address);
  /// Code index of the instruction that some lanes execute next, or wait at, and these lanes; kNone when all have
  /// exited.
  std::pair<std::uint32_t, Mask> position() const;
  /// Null unless the warp asked a moment ago, and lives.
  const Poll* poll() const {
    return poll_.code != kNone && steps_ - poll_.step <= kMoment && exited_ != present_ ? &poll_ : nullptr;
  }
  /// Some lanes wait for nothing.
  bool can_run() const;
  /// True, once, for lanes that come back to collect the result of their barrier.
  bool collects(Mask lanes);
  void release(int barrier);
  /// Lets other warps run before the next instruction.
  void yield() {
    budget_ = 1;
    later_budget_ = 0;
  }

  // Memory.
  /// The last allocation that an access of this warp fell into.
  const Region* region = nullptr;
  std::vector<PendingCopy> pending_copies;
  std::uint32_t copy_groups[kWarpSize] = {};  // committed by each lane
  std::vector<BulkGroups> bulk_groups;        // by lane; empty until the warp has one
  WgmmaGroups wgmma;
  std::uint32_t cluster_arrivals[kWarpSize] = {};  // of each lane
  std::uint32_t cluster_waits[kWarpSize] = {};
  std::vector<std::uint32_t> register_counts;  // of the setmaxnreg that the warp executed

  // What the warp knows to have happened.
  Past past;
  /// As it was at the last fence that releases: what a relaxed operation after it publishes.
  Past released;
  Agent agent() const { return agent_; }
  /// Others may know by now what the warp did: its next accesses are later ones.
  void advance_clock();
  /// fence.proxy.async: what the warp knows of is visible to the asynchronous proxy.
  void fence_proxy();
  RegisterHazards* hazards() { return hazards_.get(); }

  std::uint32_t code_index(const Instruction& instruction) const;
  Accessor accessor(const Instruction& instruction, int lane) const {
    return {agent_, static_cast<std::uint32_t>(lane), code_index(instruction)};
  }
  /// @throws EmulationFinding, always
  [[noreturn]] void fail(FindingKind kind, const Instruction& instruction, int lane, std::uint64_t address,
                         std::string detail);
  /// "threads (0,0,0)..(15,0,0) of warp 0"
  std::string describe_lanes(Mask lanes) const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  /// Instructions of a polling loop at most.
  static constexpr std::uint64_t kMoment = 64;

  bool reschedule();
  void release_all(Path::State state);
  /// The path's lanes stop until somebody makes it ready.
  void suspend(const Path& path);
  void fill_special(SpecialSlot special);
  [[noreturn]] void fail_divergence(const Path& path);

  Cta& cta_;
  const Program& program_;
  int index_ = 0;
  Agent agent_ = 0;
  std::unique_ptr<RegisterHazards> hazards_;  // of a program with wgmma
  Poll poll_;
  Mask timed_out_ = 0;
  std::unique_ptr<std::byte, Free> registers_;
  Mask present_ = 0;  // fewer than 32 in the last warp of a block
  Mask exited_ = 0;
  Mask active_ = 0;
  Mask collecting_ = 0;
  std::uint32_t pc_ = 0;
  std::uint32_t limit_ = 0;         // program counter at which another path must be looked at; 0: at once
  std::uint32_t budget_ = 0;        // instructions until the next check_interruption()
  std::uint32_t later_budget_ = 0;  // those that may follow it
  std::uint64_t steps_ = 0;
  int favoured_lane_ = -1;   // its path goes first, so that no path starves in another's loop
  std::vector<Path> paths_;  // all but the one that runs
};

}  // namespace tilewright::emulator
