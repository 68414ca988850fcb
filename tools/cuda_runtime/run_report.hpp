// What the emulated CUDA libraries found in one process of `tilewright emulate run`, as the JSON that they leave for
// the command, and the settings that the command gives them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tilewright/emulator/checks.hpp"

namespace tilewright::cuda_runtime {

/// The environment variable that holds Settings as JSON.
inline constexpr const char* kSettingsVariable = "TILEWRIGHT_EMULATED_CUDA";

struct Settings {
  std::string report_folder;  // each process writes PID.json there; empty: findings are printed to stderr at exit
  std::string target = "sm_90a";
  std::uint64_t steps_per_cta = std::uint64_t{1} << 30;
  std::int64_t memory_bytes = std::int64_t{8} << 30;
  int multiprocessors = 4;
  int threads = 1;             // host threads of a launch without global checks; 0: all
  bool check_global = true;    // races and uninitialised reads in global memory, and within warps
  bool cooperative = false;    // all CTAs of a launch that fit are resident, and run in turn
  bool skips_repeats = false;  // leaves out work that would only compute again what is in memory: see RepeatedWork
};

std::string to_json(const Settings& settings);
/// @throws InvalidArgument
Settings parse_settings(const std::string& json);

/// A finding, and the kernel in whose launch it was found.
struct KernelFinding {
  std::string kernel;
  emulator::Finding finding;
};

struct RunReport {
  std::string program;
  std::vector<KernelFinding> findings;
  std::map<std::string, std::uint64_t> unsupported;  // functions of CUDA that are not emulated, and their calls
  std::vector<std::string> notes;                    // calls that failed for a reason that the error code does not give
  std::uint64_t launches = 0;
  std::uint64_t skipped = 0;  // launches, fills and others that Settings::skips_repeats has left out
  double seconds = 0;         // in launches
  bool timed = false;         // the program has asked for the time between two events

  /// Adds a finding, or its count to one of the same kind at the same place of the same kernel.
  void add(const std::string& kernel, emulator::Finding finding);
  void merge(const RunReport& other);
};

std::string to_json(const RunReport& report);
/// @throws InvalidArgument
RunReport parse_report(const std::string& json);

}  // namespace tilewright::cuda_runtime
