// A compiler: text to bytes. NVRTC or nvcc, both in child processes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/environment.hpp"
#include "tilewright/compile/source.hpp"

namespace tilewright::compile {

class Compiler {
 public:
  virtual ~Compiler() = default;

  /// What makes its output what it is: backend, build id, fixed options. Part of every cache key. Known without loading
  /// the compiler: a process whose kernels are all in the cache never pays for that.
  virtual const std::string& identity() const = 0;

  /// Thread-safe. @throws CompileError with the log and where the source was dumped.
  virtual Artifact compile(const Source& source) const = 0;
};

enum class Backend {
  nvrtc,             // in a process of its own
  nvrtc_in_process,  // in this process: what crashes, hangs or takes all memory there cannot be stopped
  nvcc,
  none,  // nothing is compiled: only kernels that are in the cache run
};

/// "nvrtc", "nvrtc_in_process", "nvcc" or "none". The refusal follows the name of what was set in a sentence.
Result<Backend> parse_backend(std::string_view text);

struct ToolchainOptions {
  Backend backend = Backend::nvrtc;
  std::string cuda_home;     // searched first when set: TILEWRIGHT_CUDA_HOME
  bool nvrtc_cache = false;  // NVRTC >= 12.9 keeps a cache of its own in ~/.nv; ours makes it redundant
  std::string dump_dir;      // failed sources are written here; empty: a private temporary directory
  double timeout_s = 300.0;  // wall time after which a compile is ended: TILEWRIGHT_COMPILE_TIMEOUT
  std::int64_t memory_bytes = std::int64_t{8} << 30;  // of address space of NVRTC's process; 0: no limit
};

/// Finds the compiler, without loading it. The environment is a parameter so that a test may say what there is.
/// @throws ToolchainNotFound listing the places searched and the command that installs it.
std::unique_ptr<Compiler> make_compiler(const ToolchainOptions& options,
                                        const Environment& environment = capture_environment());

/// One place that was looked at for a library or tool, for `doctor` and for ToolchainNotFound.
struct SearchedPlace {
  std::string where;
  bool found = false;
};

/// Compiles all, on up to `threads` threads; the results are in order. @throws what the first failed source threw,
/// after all ended.
std::vector<Artifact> compile_all(const Compiler& compiler, std::span<const Source> sources, int threads);

}  // namespace tilewright::compile
