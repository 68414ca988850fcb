// A warp: its registers, its divergent paths, and the asynchronous work it has in flight.
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
#include "tilewright/emulator/undefined_values.hpp"
#include "tilewright/emulator/unused_loads.hpp"

namespace tilewright::emulator {

class Cta;

/// Lanes that are at the same instruction. A diverged warp has several paths; it runs the one with the lowest program
/// counter, and paths that reach the same instruction reconverge.
struct Path {
  enum class State : std::uint8_t {
    ready,
    converging,          // at a warp-wide instruction, waiting for lanes of other paths
    at_barrier,          // arrived at a named barrier, waiting for the rest of the CTA
    at_mbarrier,         // waiting for a phase of an mbarrier
    at_cluster_barrier,  // waiting for the rest of the cluster
    at_wgmma_wait,       // waiting for the other warps of its warpgroup to commit the same wgmma group
  };
  std::uint32_t pc = 0;
  Mask lanes = 0;
  State state = State::ready;
  std::uint32_t waits_at = kNone;  // index in Program::code of the instruction it waits at
  int barrier = 0;                 // at_barrier: the named barrier
  std::uint32_t mbarrier = 0;      // at_mbarrier: its shared address
  std::uint32_t phase = 0;         // the phase, as a number, that must complete

  bool waits() const { return state >= State::at_barrier; }
};

/// A cp.async of one thread that is not complete.
struct PendingCopy {
  Accessor accessor;
  std::uint32_t group = 0;  // number of the thread's cp.async group that it belongs to
  std::uint64_t to = 0;     // shared address
  std::uint32_t bytes = 0;
  std::byte data[16] = {};
  std::uint64_t step = 0;           // Warp::steps() when it was issued
  std::uint8_t undefined[16] = {};  // by byte of the source: the bits that no one has written
  bool has_undefined = false;
};

/// The last poll of a warp: a wait on an mbarrier that returned false, or a strong load from global memory in a
/// cooperative launch.
struct Poll {
  std::uint32_t code = kNone;  // index in Program::code
  Mask lanes = 0;
  std::uint64_t global = 0;  // the address that was loaded; 0 for a wait on an mbarrier
  std::uint32_t mbarrier = 0;
  std::uint32_t phase = 0;
  std::uint64_t step = 0;  // Warp::steps() at the poll
};

/// The wgmma groups of a warp; groups are numbered from 1.
struct WgmmaGroups {
  std::uint32_t committed = 0;
  std::uint32_t retired = 0;    // last group that a wgmma.wait_group has waited for
  std::uint64_t mma_count = 0;  // wgmma.mma_async executed; must be equal in the four warps of a warpgroup

  /// The group that the next wgmma.commit_group closes.
  std::uint32_t open() const { return committed + 1; }
};

/// The bulk groups of one thread; groups are numbered from 1.
struct BulkGroups {
  std::uint32_t committed = 0;
  std::uint32_t read = 0;  // last group whose reads of shared memory a cp.async.bulk.wait_group has waited for
  bool open = false;       // a copy was issued since the last commit
  std::uint32_t code = 0;  // of the last copy, an index in Program::code
};

class Warp {
 public:
  Warp(Cta& cta, int index, Agent agent, const Program& program);

  /// Resets all state, to run as a warp of the CTA's current index in the grid.
  void reset();

  enum class State : std::uint8_t { ready, blocked, finished };
  /// Runs at most `budget` instructions, or until no lane can continue. Calls check_interruption() every 256.
  State run(std::uint32_t budget);
  /// Number of instructions executed.
  std::uint64_t steps() const { return steps_; }
  /// Returns the time that `instruction` reads from a clock that has counted to `now`. A warp that waits in a loop
  /// which reads the clock skips more and more time. After hours the clock stands still, so that the emulator sees that
  /// a wait without an end changes nothing.
  std::uint64_t read_clock(const Instruction& instruction, std::uint64_t now);

  template <class T>
  T* reg(Slot slot) {
    return reinterpret_cast<T*>(registers_.get() + slot);
  }
  Mask predicate(Slot slot) { return *reg<Mask>(slot); }
  /// Sets the predicate of `lanes`; the other lanes keep theirs.
  void set_predicate(Slot slot, Mask value, Mask lanes) {
    Mask& predicate = *reg<Mask>(slot);
    predicate = (predicate & ~lanes) | (value & lanes);
  }

  Cta& cta() const { return cta_; }
  int index() const { return index_; }
  const Program& program() const { return program_; }
  Mask present() const { return present_; }
  Mask exited() const { return exited_; }
  const std::vector<Path>& paths() const { return paths_; }

  // Control flow. `lanes` belong to the running path.
  void branch(Mask lanes, std::uint32_t target);
  void exit(Mask lanes);
  /// True when all `required` lanes are in `lanes`; else suspends these until the others reach the instruction.
  /// @throws EmulationFinding barrier_divergence when a required lane has exited
  bool converge(const Instruction& instruction, Mask lanes, Mask required);
  /// The lanes wait at a named barrier until release(barrier). Then they continue after the instruction or, when
  /// `reexecute` is set, execute it again to read its result.
  void wait_at_barrier(const Instruction& instruction, Mask lanes, int barrier, bool reexecute);
  /// The lanes wait for a phase of an mbarrier, then execute the instruction again.
  void wait_at_mbarrier(const Instruction& instruction, Mask lanes, std::uint32_t address, std::uint32_t phase);
  void wait_at_cluster_barrier(const Instruction& instruction, Mask lanes, std::uint32_t phase);
  void release_mbarrier(std::uint32_t address);
  /// The lanes wait until release_warpgroup(), then execute the instruction again.
  void wait_for_warpgroup(const Instruction& instruction, Mask lanes);
  void release_cluster_barrier();
  void release_warpgroup();
  /// Times out all waits for an mbarrier, which then return false. Returns whether there was one.
  bool time_out();
  /// Whether the lanes' wait was timed out; clears that state.
  bool timed_out(Mask lanes);
  /// Records that the lanes tested for a phase that is not complete.
  void note_poll(const Instruction& instruction, Mask lanes, std::uint32_t address, std::uint32_t phase);
  /// Records that the lanes loaded what other CTAs of a cooperative launch may change.
  void note_global_poll(const Instruction& instruction, Mask lanes, std::uint64_t address);
  /// The instruction that some lanes execute next or wait at, as an index in Program::code, and these lanes; kNone when
  /// all lanes have exited.
  std::pair<std::uint32_t, Mask> position() const;
  /// The last poll; null unless it was within the last kMaxPollLoopSteps instructions and the warp has not exited.
  const Poll* poll() const {
    return poll_.code != kNone && steps_ - poll_.step <= kMaxPollLoopSteps && exited_ != present_ ? &poll_ : nullptr;
  }
  /// Returns a hash of `seed` and the values of all registers.
  std::uint64_t digest_registers(std::uint64_t seed) const;
  /// Whether some lanes can run.
  bool can_run() const;
  /// Whether the lanes execute a barrier instruction again to read its result; clears that state.
  bool is_reexecuting(Mask lanes);
  void release(int barrier);
  /// Ends this warp's turn after the current instruction.
  void yield() {
    budget_ = 1;
    remaining_budget_ = 0;
  }

  // State of memory and asynchronous instructions.
  /// The allocation of the warp's last global access, as a cache of the lookup.
  const Region* region = nullptr;
  std::vector<PendingCopy> pending_copies;
  std::uint32_t copy_groups[kWarpSize] = {};  // cp.async groups committed, by lane
  std::vector<BulkGroups> bulk_groups;        // by lane; empty before the warp's first bulk group
  WgmmaGroups wgmma;
  std::uint32_t cluster_arrivals[kWarpSize] = {};  // barrier.cluster.arrive executed, by lane
  std::uint32_t cluster_waits[kWarpSize] = {};     // barrier.cluster.wait executed, by lane
  std::vector<std::uint32_t> register_counts;      // operands of the setmaxnreg executed

  // Happens-before.
  Clocks clocks;
  /// `clocks` at the last releasing fences, which a later relaxed operation publishes.
  ReleasedClocks released;
  /// A fence of memory order other than .acquire.
  void release(MemoryScope scope) {
    released.fence(scope, clocks);
    advance_clock();
  }
  Agent agent() const { return agent_; }
  Agent grid_agent = 0;  // of accesses to global memory, which GlobalShadow::start() sets
  /// Called after a release: the warp's later accesses are not covered by it.
  void advance_clock();
  /// fence.proxy.async: all accesses of these memories ordered before it become visible to the async proxy.
  void fence_proxy(bool shared, bool global);
  RegisterHazards* hazards() { return hazards_.get(); }
  /// Whether loads of which an instruction has used a value are known to be complete.
  bool follows_loads() const { return unused_loads_ != nullptr; }
  /// The registers that hold undefined values, if any; null otherwise.
  UndefinedValues* undefined_values() { return undefined_ && undefined_->any() ? undefined_.get() : nullptr; }
  /// As undefined_values(), but never null.
  UndefinedValues& track_undefined_values();

  std::uint32_t code_index(const Instruction& instruction) const {
    return static_cast<std::uint32_t>(&instruction - program_.code.data());
  }
  Accessor accessor(const Instruction& instruction, int lane) const {
    return {agent_, static_cast<std::uint32_t>(lane), code_index(instruction)};
  }
  /// @throws EmulationFinding, always
  [[noreturn]] void fail(FindingKind kind, const Instruction& instruction, int lane, std::uint64_t address,
                         std::string detail);
  /// Keeps a finding and returns if the launch has a log; else throws it, or ignores it if it is a warning. `detail()`
  /// is its text, which is made for the findings that are kept.
  template <class Detail>
  void report(Severity severity, FindingKind kind, const Instruction& instruction, int lane, std::uint64_t address,
              Detail&& detail) {
    if (is_reported(kind, severity, instruction)) add_report(severity, kind, instruction, lane, address, detail());
  }
  /// "threads (0,0,0)..(15,0,0) of warp 0"
  std::string describe_lanes(Mask lanes) const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  /// Longest loop, in instructions, that is recognised as polling.
  static constexpr std::uint64_t kMaxPollLoopSteps = 64;
  /// Longest loop that is recognised as waiting for time, if it also polls: that of libcu++ has a back-off.
  static constexpr std::uint64_t kMaxClockLoopSteps = 1024;
  /// Reads of the clock in such a loop before the warp skips cycles: 64 at first, and twice as many at each read.
  static constexpr std::uint32_t kClockPolls = 256;
  /// Reads that skip cycles, before the clock stands still.
  static constexpr std::uint32_t kClockSkips = 40;

  /// Merges paths that have met, and makes the path with the lowest program counter, or that of the favoured lane, the
  /// running one. False when no path is ready.
  bool reschedule();
  /// The checks before an instruction of a warp that is watched_. `lanes` are those that execute it, or none.
  void watch(const Instruction& instruction, Mask lanes);
  /// Makes all paths in this state ready.
  void release_all(Path::State state);
  bool is_always_watched() const;
  /// Moves the path's lanes from the running path to the list of paths, where they wait.
  void suspend(const Path& path);
  [[noreturn]] void fail_divergence(const Path& path);
  bool is_reported(FindingKind kind, Severity severity, const Instruction& instruction) const;
  void add_report(Severity severity, FindingKind kind, const Instruction& instruction, int lane, std::uint64_t address,
                  std::string detail);

  Cta& cta_;
  const Program& program_;
  int index_ = 0;
  Agent agent_ = 0;
  std::unique_ptr<RegisterHazards> hazards_;    // null for programs without wgmma, and for debug builds
  std::unique_ptr<UnusedLoads> unused_loads_;   // null for programs without bulk copies
  std::unique_ptr<UndefinedValues> undefined_;  // null before the warp's first undefined value
  bool watched_ = false;                        // whether watch() has something to do
  Poll poll_;
  struct ClockPoll {
    std::uint32_t code = kNone;
    std::uint32_t reads = 0;  // one after the other by this instruction
    std::uint64_t step = 0;   // steps_ at the last
    std::uint64_t skipped = 0;
    std::uint64_t last = 0;  // what was read
  } clock_poll_;
  Mask timed_out_ = 0;
  std::unique_ptr<std::byte, Free> registers_;
  Mask present_ = 0;  // lanes that have a thread: fewer than 32 in the last warp of some blocks
  Mask exited_ = 0;
  Mask active_ = 0;
  Mask reexecuting_ = 0;  // see is_reexecuting()
  std::uint32_t pc_ = 0;
  std::uint32_t limit_ = 0;             // program counter at which to reschedule; 0: before the next instruction
  std::uint32_t budget_ = 0;            // instructions until the next check_interruption()
  std::uint32_t remaining_budget_ = 0;  // instructions of this turn after that
  std::uint64_t steps_ = 0;
  int favoured_lane_ = -1;   // if not -1, this lane's path runs first, so that no path starves another
  std::vector<Path> paths_;  // all paths but the running one
};

}  // namespace tilewright::emulator
