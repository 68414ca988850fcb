// The interface of a compiler, which turns a Source into an Artifact, and its backends: NVRTC and nvcc for CUDA C++,
// and MLIR.
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

  /// Everything about the compiler that determines its output: backend, build id, fixed options. Part of every cache
  /// key. Known without loading the compiler, so that a process whose kernels are all cached never loads it.
  virtual const std::string& identity() const = 0;

  /// identity() of what compiles this source; part of its cache key. @throws ToolchainNotFound
  virtual const std::string& identity_for(const Source& source) const;

  /// Thread-safe. @throws CompileError with the log and the path to which the source was dumped.
  virtual Artifact compile(const Source& source) const = 0;
};

/// How CUDA C++ is compiled. A source in MLIR is compiled in a process of its own, except by nvrtc_in_process and none.
enum class Backend {
  nvrtc,             // in a process of its own
  nvrtc_in_process,  // in this process: a compile that crashes, hangs or exhausts memory cannot be stopped
  nvcc,
  none,  // compiling is disabled: only kernels that are in the cache run
};

/// Parses "nvrtc", "nvrtc_in_process", "nvcc" or "none". The refusal is worded to follow the name of the setting:
/// "must be ...".
Result<Backend> parse_backend(std::string_view text);

struct ToolchainOptions {
  Backend backend = Backend::nvrtc;
  std::string cuda_home;     // searched first when set: TILEWRIGHT_CUDA_HOME
  std::string mlir_library;  // path of libtilewright_mlir.so; empty: it is searched. TILEWRIGHT_MLIR_LIBRARY
  bool nvrtc_cache = false;  // NVRTC >= 12.9 has a cache of its own in ~/.nv, which ours makes redundant
  std::string dump_dir;      // failed sources are written here; empty: a private temporary directory
  double timeout_s = 300.0;  // wall time after which a compile is killed: TILEWRIGHT_COMPILE_TIMEOUT
  std::int64_t memory_bytes = std::int64_t{8} << 30;  // address-space limit of NVRTC's process; 0: no limit
};

/// Finds the compiler of CUDA C++, without loading it. The compiler of MLIR is searched when the first source in MLIR
/// is compiled. Tests pass an environment of their own. `identity()` is that of CUDA C++.
/// @throws ToolchainNotFound listing the places searched and the command that installs it.
std::unique_ptr<Compiler> make_compiler(const ToolchainOptions& options,
                                        const Environment& environment = capture_environment());

/// One place that was looked at for a library or tool, for `doctor` and for ToolchainNotFound.
struct SearchedPlace {
  std::string where;
  bool found = false;
};

/// Compiles all sources on up to `threads` threads; results are in the order of `sources`. @throws the exception of the
/// first source that failed, after all compiles have ended.
std::vector<Artifact> compile_all(const Compiler& compiler, std::span<const Source> sources, int threads);

}  // namespace tilewright::compile
