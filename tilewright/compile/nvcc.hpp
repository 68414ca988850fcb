// The nvcc backend: a child process in a private folder. Slower than NVRTC (0.3 s and up); for comparison and for
// machines whose NVRTC is broken.
#pragma once

#include <string>

#include "tilewright/compile/compiler.hpp"

namespace tilewright::compile {

class NvccCompiler : public Compiler {
 public:
  /// Finds nvcc and asks it for its version. @throws ToolchainNotFound
  NvccCompiler(const ToolchainOptions& options, const Environment& environment);

  /// "nvcc V13.0.88 cuda_13.0.r13.0/compiler.36424714_0 <contents of nvcc, ptxas and cicc> <build id of g++>
  /// -std=c++20": nvcc preprocesses with the host's compiler, and its own binaries carry no build id.
  const std::string& identity() const override { return identity_; }

  /// @throws CompileError also when nvcc is killed by a signal or runs out of time; InvalidArgument when validate()
  /// refuses.
  Artifact compile(const Source& source) const override;

 private:
  std::vector<std::string> child_environment(const std::string& temporary_dir) const;

  ToolchainOptions options_;
  Environment environment_;
  std::string path_;
  std::string identity_;
};

}  // namespace tilewright::compile
