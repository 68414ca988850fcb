// Counts what a launch executes: instructions, memory traffic, bank conflicts, divergence and asynchronous copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

struct ProfileCounts {
  std::uint64_t instructions = 0;        // executed by warps
  std::uint64_t active_lanes = 0;        // of these, in the warp's running path; 32 each without divergence
  std::uint64_t global_requests = 0;     // warp instructions that access global memory
  std::uint64_t global_bytes = 0;        // that their lanes access
  std::uint64_t global_sectors = 0;      // of 32 bytes, different ones per request
  std::uint64_t global_lines = 0;        // of 128 bytes, different ones per request
  std::uint64_t shared_requests = 0;     // warp instructions that access shared memory
  std::uint64_t shared_wavefronts = 0;   // passes over the 32 banks that they take
  std::uint64_t bank_conflicts = 0;      // passes beyond those that the width of the access needs
  std::uint64_t async_copies = 0;        // cp.async of threads that were waited for
  std::uint64_t async_instructions = 0;  // that the warp executed between their issue and the end of the wait

  ProfileCounts& operator+=(const ProfileCounts& other);
  /// Of 32 lanes.
  double mean_active_lanes() const;
  /// Instructions between a cp.async and the end of the wait for it.
  double mean_async_instructions() const;
};

/// The counts of one kind of instruction, or of one line, in a launch.
struct ProfileRow {
  std::string name;  // "ld.global", or the file; empty for a line of the PTX
  int line = 0;      // 0 for a kind
  ProfileCounts counts;
};

struct LaunchProfile {
  ProfileCounts total;
  std::vector<ProfileRow> kinds;  // the most executed first
  std::vector<ProfileRow> lines;  // by file and line: of the source if the PTX has line information, else of the PTX
};

/// The counters of a launch that runs, by index in Program::code. For one host thread.
class Profile {
 public:
  void start(std::size_t instructions) { counts_.assign(instructions, {}); }
  const std::vector<ProfileCounts>& counts() const { return counts_; }

  void count_instruction(std::uint32_t code, Mask active);
  void count_global(std::uint32_t code, Mask lanes, const std::uint64_t* addresses, std::uint32_t bytes);
  void count_shared(std::uint32_t code, Mask lanes, const std::uint64_t* addresses, std::uint32_t bytes);
  void count_copy(std::uint32_t code, std::uint64_t instructions);

 private:
  std::vector<ProfileCounts> counts_;
};

/// Adds up the counters by kind and by line.
LaunchProfile summarise(const Profile& profile, const Program& program, const Module& module);

}  // namespace tilewright::emulator
