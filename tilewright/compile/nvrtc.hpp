// The NVRTC backend: compiles in this process, headers and source in memory, no include path.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "tilewright/compile/compiler.hpp"

namespace tilewright::compile {

/// NVRTC's entry points, resolved by name; the types are ours, so no CUDA header is needed to build.
struct NvrtcFunctions;

class NvrtcCompiler : public Compiler {
 public:
  /// Finds the library and reads its build id; loads nothing. @throws ToolchainNotFound
  NvrtcCompiler(const ToolchainOptions& options, const Environment& environment);
  ~NvrtcCompiler() override;

  /// "nvrtc <build id> -std=c++20 --minimal". The build id is in the library's first page: loading 109 MB to ask it for
  /// its version costs 15 to 140 ms, and nvrtcVersion() does not tell two builds of one release apart.
  const std::string& identity() const override { return identity_; }

  /// The first call loads the library. @throws CompileError, ToolchainNotFound, InvalidArgument when validate()
  /// refuses.
  Artifact compile(const Source& source) const override;

 private:
  const NvrtcFunctions& functions() const;

  ToolchainOptions options_;
  std::string temporary_dir_;
  std::string path_;
  std::string identity_;
  mutable std::once_flag loaded_;
  mutable std::unique_ptr<const NvrtcFunctions> functions_;
};

}  // namespace tilewright::compile
