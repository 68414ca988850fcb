// PTX to cubin by ptxas, in a child process. nvJitLink cannot be used: it compiles PTX as a part of a larger program, for
// which it ignores setmaxnreg.
#pragma once

#include <optional>
#include <string>

#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/toolchain.hpp"

namespace tilewright::compile {

class Assembler {
 public:
  /// Finds ptxas without running it. That there is none is an error of assemble().
  Assembler(const ToolchainOptions& options, const Environment& environment);

  /// "ptxas <digest of its contents>", or "no assembler".
  const std::string& identity() const { return identity_; }

  struct Assembled {
    std::string cubin;
    std::string log;    // what ptxas -v prints
    std::string error;  // why there is no cubin; empty if there is one
  };

  /// Assembles the PTX that was made from `source`, with its target, register limit and line information. It is an error
  /// if ptxas reports that it ignored setmaxnreg or serialised wgmma (its messages C75xx).
  /// @throws ToolchainNotFound when there is no ptxas; whatever check_interruption() throws.
  Assembled assemble(const Source& source, const std::string& ptx) const;

 private:
  ToolchainOptions options_;
  std::string temporary_dir_;
  Search search_;
  std::string identity_;
};

/// The lines of an assembler's log with messages C7500 to C7599: setmaxnreg was ignored, or wgmma serialised.
std::string lost_performance(std::string_view log);

}  // namespace tilewright::compile
