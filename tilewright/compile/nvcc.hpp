// The nvcc backend: runs nvcc as a child process in a private folder. Slower than NVRTC (0.3 s and more per kernel); it
// exists for comparison and for machines whose NVRTC does not work.
#pragma once

#include <string>

#include "tilewright/compile/compiler.hpp"

namespace tilewright::compile {

class NvccCompiler : public Compiler {
 public:
  /// Finds nvcc and runs `nvcc --version`. @throws ToolchainNotFound
  NvccCompiler(const ToolchainOptions& options, const Environment& environment);

  /// "nvcc V13.0.88 cuda_13.0.r13.0/compiler.36424714_0 <digests of nvcc, ptxas and cicc> <build id of g++>
  /// -std=c++20". The binaries of the toolkit are identified by content because they have no build id; g++ is part of
  /// the identity because nvcc preprocesses with it.
  const std::string& identity() const override { return identity_; }

  /// @throws CompileError, also when nvcc is killed by a signal or exceeds the time limit; InvalidArgument when
  /// validate() refuses.
  Artifact compile(const Source& source) const override;

 private:
  std::vector<std::string> child_environment(const std::string& temporary_dir) const;

  ToolchainOptions options_;
  Environment environment_;
  std::string path_;
  std::string identity_;
};

}  // namespace tilewright::compile
