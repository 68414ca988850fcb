// The table of environment variables TILEWRIGHT_*, by which they are read and listed.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

struct EnvironmentVariable {
  const char* name;
  const char* default_value;  // the value where the variable is not set; empty: there is none
  const char* meaning;        // one line, for `tilewright env`

  /// The value in the environment. std::nullopt if the variable is unset or empty, or if the program is set-uid
  /// (secure_getenv).
  std::optional<std::string> value() const;
};

/// Every variable that is read. Those that are 0 or 1 may also be true, yes, on, false, no or off. `tilewright env`
/// prints this table.
inline constexpr std::array<EnvironmentVariable, 18> kEnvironmentVariables = {{
    {"TILEWRIGHT_DEVICE", "auto",
     "the device that runs kernels: auto (a GPU if there is one, else the emulator), cuda, cuda:N, emulator, "
     "emulator:sm_80, "
     "emulator:sm_90a"},
    {"TILEWRIGHT_COMPILER", "nvrtc",
     "the compiler of kernels: nvrtc (in a separate process), nvrtc_in_process, nvcc, or none, which only runs kernels "
     "that are in the cache"},
    {"TILEWRIGHT_COMPILE_TIMEOUT", "300",
     "seconds after which a compile is killed; also how long to wait for another process that compiles the same "
     "kernel"},
    {"TILEWRIGHT_CUDA_HOME", "", "the folder of a CUDA toolkit, searched before all other places"},
    {"TILEWRIGHT_MLIR_LIBRARY", "",
     "path of libtilewright_mlir.so, which compiles kernels in MLIR; default: it is searched beside the program and "
     "the "
     "library"},
    {"TILEWRIGHT_CACHE_DIR", "",
     "the folder for compiled kernels and tuning records; default: $XDG_CACHE_HOME/tilewright, else "
     "~/.cache/tilewright"},
    {"TILEWRIGHT_CACHE_DISABLE", "0", "1: nothing is kept on disk"},
    {"TILEWRIGHT_CACHE_MAX_BYTES", "2147483648",
     "largest total size of the compiled kernels on disk; beyond it the least recently used ones are deleted"},
    {"TILEWRIGHT_CACHE_SHARED", "",
     "folders, separated by colons, that are searched for compiled kernels after TILEWRIGHT_CACHE_DIR; read-only"},
    {"TILEWRIGHT_JOBS", "0",
     "number of kernels that are compiled at the same time; 0: one for each CPU core, at most 8"},
    {"TILEWRIGHT_DUMP_DIR", "",
     "the folder where every source that fails to compile is kept; default: $TMPDIR/tilewright-failed-UID, which keeps "
     "the last 32"},
    {"TILEWRIGHT_EMULATOR_STEPS", "8589934592",
     "warp instructions that a CTA may execute on the emulator before the launch fails as endless; 0: no limit"},
    {"TILEWRIGHT_EMULATOR_CHECK_GLOBAL", "0",
     "1: the emulator also looks for races and uninitialised reads in global memory; a launch then uses "
     "one CPU core and takes up to 4 times as long"},
    {"TILEWRIGHT_TUNING", "use",
     "whether measured times choose kernels: off, use (tuning records), on_first_use (also tune calls without a "
     "record)"},
    {"TILEWRIGHT_FIRST_USE", "fastest_kernel",
     "which kernel computes a problem that was not tuned: fastest_kernel, or fastest_start (one that compiles quickly, "
     "if it is predicted to be at most 5 % slower)"},
    {"TILEWRIGHT_OVERLAP_LAUNCHES", "0",
     "1: kernels of sm_90 start while the last kernel of their stream ends, if they wait for it on their "
     "own"},
    {"TILEWRIGHT_DETERMINISTIC", "0",
     "1: only kernels that promise equal bits in every run are chosen, unless a call says otherwise"},
    {"TILEWRIGHT_BATCH_INVARIANT", "0",
     "1: only kernels with which a row's bits depend neither on M nor on the batch are chosen, unless a "
     "call "
     "says otherwise"},
}};

/// The row of that name. Does not compile if there is none.
consteval const EnvironmentVariable& environment_variable(std::string_view name) {
  for (const EnvironmentVariable& row : kEnvironmentVariables) {
    if (row.name == name) return row;
  }
  throw "no environment variable has this name";
}

/// Sorted names of variables that are set, begin with TILEWRIGHT_ and have no row: most likely misspelt. They may
/// contain any bytes; see printable().
std::vector<std::string> unknown_environment_variables();

}  // namespace tilewright
