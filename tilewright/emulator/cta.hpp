// One CTA: its warps, its shared and local memory, its barriers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/emulator/global_memory.hpp"
#include "tilewright/emulator/options.hpp"
#include "tilewright/emulator/program.hpp"
#include "tilewright/emulator/shared_memory.hpp"
#include "tilewright/emulator/warp.hpp"

namespace tilewright::emulator {

/// What all CTAs of a launch have in common.
struct Launch {
  const Module& module;
  const Program& program;
  EmulatorOptions options;
  RegionMap regions;
  runtime::Dim3 grid;
  runtime::Dim3 block;
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t sm_count = 1;
  std::vector<std::byte> parameters;
};

/// A named barrier of the CTA. Arrivals count threads.
struct Barrier {
  std::uint32_t expected = 0;  // 0: nobody has arrived in this phase
  std::uint32_t arrived = 0;
  std::uint32_t votes = 0;  // of bar.red: threads whose predicate holds
  VectorClock clock{};
};

inline constexpr int kBarriers = 16;

class Cta {
 public:
  explicit Cta(const Launch& launch);
  Cta(const Cta&) = delete;
  Cta& operator=(const Cta&) = delete;

  /// Runs the CTA of that index to its end. @throws EmulationFinding
  void run(runtime::Dim3 index);

  const Launch& launch() const { return launch_; }
  SharedMemory& shared() { return shared_; }
  VectorClock& clock(int warp) { return clocks_[static_cast<std::size_t>(warp)]; }
  int threads() const { return threads_; }
  std::uint32_t special(SpecialRegister what, int warp, int lane) const;
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

  [[noreturn]] void fail(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
                         std::string detail) const;
  /// Keeps a finding that is thrown at the next barrier or end of the CTA, unless something worse is found by then.
  void suspect(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address, std::string detail);
  std::string describe_place(std::uint32_t code_index) const;

 private:
  void reset_shared_memory();
  void complete(int barrier);
  void advance_clock(int warp);
  Finding make_finding(FindingKind kind, std::uint32_t code_index, int thread, std::uint64_t address,
                       std::string detail) const;
  void throw_suspicion() const;
  [[noreturn]] void fail_deadlock() const;
  void check_steps() const;

  const Launch& launch_;
  int threads_ = 0;
  runtime::Dim3 index_;
  std::vector<std::unique_ptr<Warp>> warps_;
  SharedMemory shared_;
  std::vector<std::byte> local_;
  std::array<VectorClock, kMaxWarps> clocks_{};
  std::array<Barrier, kBarriers> barriers_{};
  std::array<Barrier, kBarriers> completed_{};
  std::optional<Finding> suspicion_;
};

}  // namespace tilewright::emulator
