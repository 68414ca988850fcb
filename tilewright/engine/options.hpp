// What an engine may be told. The environment is read here, once, and nowhere else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/compile/compiler.hpp"
#include "tilewright/emulator/options.hpp"
#include "tilewright/op/problem.hpp"
#include "tilewright/runtime/device.hpp"

namespace tilewright::engine {

class Engine;

/// Whether measured times choose among kernels.
enum class Tuning {
  off,           // the ranking by predicted time alone
  use,           // what earlier tunings of such a device found to be the fastest comes first
  on_first_use,  // as use; and a problem that has no record is tuned before it first runs, which takes about a second
};

struct Options {
  std::string device = "auto";  // auto, cuda, cuda:N, emulator, emulator:sm_80, emulator:sm_90a
  compile::ToolchainOptions toolchain;
  std::string cache_dir;  // empty: the usual places
  bool cache_on_disk = true;
  std::int64_t cache_max_bytes = std::int64_t{2} << 30;
  std::vector<std::string> shared_cache_dirs;  // read after the user's own and never written
  int compile_threads = 0;                     // 0: one a core, at most 8
  Tuning tuning = Tuning::use;
  /// What Tuning::on_first_use calls before a problem is run for which no choice is remembered: tune::on_first_use().
  std::function<void(Engine&, const op::Problem&)> before_first_use;
  // What an engine remembers at most; beyond it, what was used least recently goes and is found or loaded again.
  std::int64_t max_loaded_kernels = 512;     // about 1 MB each on the emulator
  std::int64_t max_remembered_calls = 4096;  // kinds of calls whose kernel is known: about 2 KB each
  std::int64_t max_rankings = 256;           // kinds of calls whose kernels were ranked: about 100 KB each
  std::uint64_t emulator_steps_per_cta = emulator::kDefaultStepsPerCta;  // of a launch on the emulator; 0: no limit
  std::int64_t pool_initial_bytes = 0;
  std::int64_t pool_maximum_bytes = 0;  // 0: all of the device

  /// What kEnvironmentVariables (base/environment_variables.hpp) say; the defaults above for those that are not set.
  /// @throws InvalidArgument naming the variable whose value cannot be read.
  static Options from_environment();
};

/// "auto" is the first GPU, or the emulator of sm_90a where there is none.
/// @throws InvalidArgument for a name that is none of these, DriverError or ToolchainNotFound for a GPU that is not
/// there.
std::shared_ptr<runtime::Device> open_device(const Options& options);

}  // namespace tilewright::engine
