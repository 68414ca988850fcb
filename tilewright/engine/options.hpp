// The options of an engine. Environment variables that set options are read only here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/compile/compiler.hpp"
#include "tilewright/emulator/options.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/registry/promises.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

class Engine;

/// How autotuning affects the choice of kernels.
enum class Tuning {
  off,           // kernels are ranked by predicted time only
  use,           // the winner of an earlier tuning on an identical device comes first
  on_first_use,  // like use, and a problem without a record is tuned before its first run, which takes about a second
};

/// The kernel that an engine chooses if no tuning has chosen one.
enum class FirstUse {
  fastest_kernel,  // the one with the shortest predicted time
  /// The fastest one that compiles quickly, if it is predicted to be at most 5 % slower than the fastest of all. It
  /// does not depend on what the cache has, so that results do not depend on earlier runs.
  fastest_start,
};

struct Options {
  std::string device = "auto";  // auto, cuda, cuda:N, emulator, emulator:sm_80, emulator:sm_90a
  compile::ToolchainOptions toolchain;
  std::string cache_dir;  // empty: the default directory
  bool cache_on_disk = true;
  std::int64_t cache_max_bytes = cache::kDefaultMaxBytes;
  std::vector<std::string> shared_cache_dirs;  // read after cache_dir, never written
  int compile_threads = 0;                     // 0: one per core, at most 8
  Tuning tuning = Tuning::use;
  FirstUse first_use = FirstUse::fastest_kernel;
  /// Required of every kernel that the engine chooses or is given, unless a call requires something else.
  registry::Promises required;
  /// Called by Tuning::on_first_use before the first run of a problem: usually tune::on_first_use(). It is not called
  /// for calls that require other promises than these options, since the tuning would choose among other kernels.
  std::function<void(Engine&, const op::Problem&)> before_first_use;
  /// Whether kernels that wait for the last one of their stream are launched while it ends (programmatic dependent
  /// launch), which hides the time of launching and of their prologue.
  bool overlap_launches = false;
  /// Kernels that need a larger workspace are refused; not set: there is no limit.
  std::optional<std::int64_t> max_workspace_bytes = {};
  // Sizes of the engine's LRU caches, in entries; at least 1.
  std::int64_t max_loaded_kernels = 512;     // about 1 MB each on the emulator
  std::int64_t max_remembered_calls = 4096;  // call keys with a chosen kernel: about 2 KB each
  std::int64_t max_rankings = 256;           // call keys with a ranking of all kernels: about 100 KB each
  std::uint64_t emulator_steps_per_cta = emulator::kDefaultStepsPerCta;  // limit per CTA and launch; 0: none
  bool emulator_checks_global = false;                                   // emulator::EmulatorOptions::check_global
  double emulator_progress_seconds = 0;                                  // emulator::EmulatorOptions::progress_seconds
  // Sizes of the memory pool of a GPU. The emulator has no pool, and ignores them.
  std::int64_t pool_initial_bytes = 0;
  std::int64_t pool_maximum_bytes = 0;  // 0: all memory of the device

  /// Reads the environment variables in kEnvironmentVariables (base/environment_variables.hpp); those that are not set
  /// leave the defaults above. @throws InvalidArgument naming a variable with an invalid value
  static Options from_environment();
};

/// Refuses numbers out of range, with the name of the member.
Support check(const Options& options);

/// Opens Options::device. "auto" is the first GPU or, if there is none, the emulator of sm_90a.
/// @throws InvalidArgument for an unknown name or what check() refuses, DriverError or ToolchainNotFound for a GPU that
/// does not exist
std::shared_ptr<runtime::Device> open_device(const Options& options);

}  // namespace tilewright::engine
