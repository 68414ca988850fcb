// The NVRTC backend: headers and source in memory, no include path; in a process of its own (compiler_process.hpp) or,
// where none can be started or the options say so, in this one.
#pragma once

#include <atomic>
#include <string>

#include "tilewright/compile/compiler.hpp"

namespace tilewright::compile {

class NvrtcCompiler : public Compiler {
 public:
  /// Finds the library and reads its build id; loads nothing. @throws ToolchainNotFound
  NvrtcCompiler(const ToolchainOptions& options, const Environment& environment);

  /// "nvrtc <build id> -std=c++20 --minimal". The build id is in the library's first page: loading 109 MB to ask it for
  /// its version costs 15 to 140 ms, and nvrtcVersion() does not tell two builds of one release apart.
  const std::string& identity() const override { return identity_; }

  /// @throws CompileError, also where the compile crashed or exceeded its limits; ToolchainNotFound, InvalidArgument
  /// when validate() refuses.
  Artifact compile(const Source& source) const override;

 private:
  ToolchainOptions options_;
  std::string temporary_dir_;
  std::string path_;
  std::string identity_;
  mutable std::atomic<bool> stays_in_process_;  // no other process can be started here
};

}  // namespace tilewright::compile
