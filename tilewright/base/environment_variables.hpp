// The variables TILEWRIGHT_* of the process's environment: one table, from which they are read and listed.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

struct EnvironmentVariable {
  const char* name;
  const char* default_value;  // what stands for it where it is not set; empty: nothing does
  const char* meaning;        // one line

  /// What it is set to. Nothing where that is empty, which is as unset, and in a set-uid program: secure_getenv.
  std::optional<std::string> value() const;
};

/// All that are read. Adding one takes a row here; `tilewright env` prints them.
inline constexpr std::array<EnvironmentVariable, 12> kEnvironmentVariables = {{
    {"TILEWRIGHT_DEVICE", "auto",
     "where kernels run: auto (a GPU if there is one, else the emulator), cuda, cuda:N, emulator, emulator:sm_80, "
     "emulator:sm_90a"},
    {"TILEWRIGHT_COMPILER", "nvrtc",
     "what compiles kernels: nvrtc, in a process of its own; nvrtc_in_process; nvcc; or none, which only runs kernels "
     "that are in the cache"},
    {"TILEWRIGHT_COMPILE_TIMEOUT", "300",
     "seconds after which a compile is ended, and for which another process's compile of the same kernel is waited "
     "for"},
    {"TILEWRIGHT_CUDA_HOME", "", "a CUDA toolkit, searched before all other places"},
    {"TILEWRIGHT_CACHE_DIR", "",
     "the folder that keeps kernels and tunings; without it $XDG_CACHE_HOME/tilewright, else ~/.cache/tilewright"},
    {"TILEWRIGHT_CACHE_DISABLE", "0", "other than 0: nothing is kept on disk"},
    {"TILEWRIGHT_CACHE_MAX_BYTES", "2147483648",
     "what the kernels on disk may come to; beyond it the least recently used go"},
    {"TILEWRIGHT_CACHE_SHARED", "",
     "folders, separated by colons, whose kernels are used after those of the cache's own folder; never written to"},
    {"TILEWRIGHT_JOBS", "0", "how many kernels are compiled at once; 0: one a core, at most 8"},
    {"TILEWRIGHT_DUMP_DIR", "",
     "the folder that keeps all sources which do not compile; without it $TMPDIR/tilewright-failed-UID keeps the last "
     "32"},
    {"TILEWRIGHT_EMULATOR_STEPS", "8589934592",
     "warp instructions that a CTA may execute on the emulator before it is said not to end; 0: any number"},
    {"TILEWRIGHT_TUNING", "use",
     "whether measured times choose kernels: off, use (those of earlier tunings), on_first_use (tune what is new)"},
}};

/// The row of that name. A name that has no row does not compile.
consteval const EnvironmentVariable& environment_variable(std::string_view name) {
  for (const EnvironmentVariable& row : kEnvironmentVariables) {
    if (row.name == name) return row;
  }
  throw "no such row";
}

/// Names that begin with TILEWRIGHT_, are set and have no row, sorted: most likely misspelt. Any bytes, see
/// printable().
std::vector<std::string> unknown_environment_variables();

}  // namespace tilewright
