// The NVRTC backend. Headers and source are passed in memory; there is no include path. Compiles in a separate process
// (compiler_process.hpp), or in this one when the options ask for it or no process can be started.
#pragma once

#include <atomic>
#include <string>

#include "tilewright/compile/compiler.hpp"

namespace tilewright::compile {

class NvrtcCompiler : public Compiler {
 public:
  /// Finds the library and reads its build id without loading it. @throws ToolchainNotFound
  NvrtcCompiler(const ToolchainOptions& options, const Environment& environment);

  /// "nvrtc <build id> -std=c++20 --minimal". The build id is read from the library's first page. Calling
  /// nvrtcVersion() instead would take 15 to 140 ms to load 109 MB, and it does not distinguish two builds of one
  /// release.
  const std::string& identity() const override { return identity_; }

  /// @throws CompileError, also when the compile crashes or exceeds its limits; ToolchainNotFound when the library
  /// cannot be loaded; InvalidArgument when validate() refuses.
  Artifact compile(const Source& source) const override;

 private:
  ToolchainOptions options_;
  std::string temporary_dir_;
  std::string path_;
  std::string identity_;
  mutable std::atomic<bool> stays_in_process_;  // by option, or because no other process could be started
};

}  // namespace tilewright::compile
