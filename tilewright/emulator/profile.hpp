// Counts what a launch executes: instructions, memory traffic, bank conflicts, divergence and asynchronous copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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
  std::uint64_t bulk_loads = 0;          // bulk and tensor copies (boxes) to shared memory
  std::uint64_t bulk_load_bytes = 0;     // their bytes, once for all CTAs of a multicast
  std::uint64_t multicast_bytes = 0;     // bytes that multicasts write beyond these: to all CTAs but one
  std::uint64_t bulk_stores = 0;         // bulk and tensor copies and reductions to global memory
  std::uint64_t bulk_store_bytes = 0;    // that they write
  std::uint64_t mbarrier_waits = 0;      // waits of warps for a phase of an mbarrier that found it complete
  std::uint64_t mbarrier_retries = 0;    // times that a warp had to wait for it, or to ask again
  std::uint64_t matrix_flops = 0;        // of mma, wmma and wgmma: two for each product, also of integers

  ProfileCounts& operator+=(const ProfileCounts& other);
  /// The mean number of lanes that execute an instruction of a warp, from 1 to 32.
  double mean_active_lanes() const;
  /// Instructions between a cp.async and the end of the wait for it.
  double mean_async_instructions() const;
};

/// The name of a count, as reports print it.
struct ProfileField {
  std::string_view name;
  std::uint64_t ProfileCounts::*count;
};
/// All counts, in the order of the members.
std::span<const ProfileField> profile_fields();

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
  /// `ctas`: the number of CTAs that get the bytes.
  void count_bulk_load(std::uint32_t code, std::uint64_t bytes, int ctas);
  void count_bulk_store(std::uint32_t code, std::uint64_t bytes);
  void count_wait(std::uint32_t code, bool complete);
  /// A matrix product of a warp.
  void count_product(std::uint32_t code, int m, int n, int k);

 private:
  std::vector<ProfileCounts> counts_;
};

/// Adds up the counters by kind and by line.
LaunchProfile summarise(const Profile& profile, const Program& program, const Module& module);

}  // namespace tilewright::emulator
