// The compiler of sources in MLIR: the library tilewright_mlir translates them to PTX, in the compiler process, and an
// assembler makes the cubin (docs/decisions/mlir_lowering.md).
#pragma once

#include <atomic>
#include <string>

#include "tilewright/compile/assembler.hpp"
#include "tilewright/compile/compiler.hpp"

namespace tilewright::compile {

/// The version of PTX that MLIR is translated to: the lowest that has every instruction of the target that we print.
/// 86 stands for 8.6.
int ptx_version(const Target& target);

class MlirCompiler : public Compiler {
 public:
  /// Finds the library and the assembler without loading them. @throws ToolchainNotFound when there is no library
  MlirCompiler(const ToolchainOptions& options, const Environment& environment);

  /// "mlir <build id of the library> <identity of the assembler>". LLVM is linked into the library statically, so the
  /// build id determines its version.
  const std::string& identity() const override { return identity_; }

  /// @throws CompileError, whose log has the line and column of every error of the text; ToolchainNotFound when the
  /// library cannot be loaded or is of another version, or when a cubin is requested and there is no assembler;
  /// InvalidArgument when validate() refuses.
  Artifact compile(const Source& source) const override;

 private:
  ToolchainOptions options_;
  std::string temporary_dir_;
  std::string path_;
  Assembler assembler_;
  std::string identity_;
  mutable std::atomic<bool> stays_in_process_;  // by option, or because no other process could be started
};

}  // namespace tilewright::compile
