// PTX to cubin: by ptxas in a child process or, where there is none, by NVRTC in the compiler process. Both compile the
// PTX as a whole program. nvJitLink cannot be used: it compiles PTX as a part of a larger program, for which it ignores
// setmaxnreg.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/compile/compiler.hpp"
#include "tilewright/compile/compiler_process.hpp"
#include "tilewright/compile/toolchain.hpp"

namespace tilewright::compile {

class Assembler {
 public:
  /// Finds ptxas, else NVRTC, without running them. That there is neither is an error of assemble().
  Assembler(const ToolchainOptions& options, const Environment& environment);

  /// "ptxas <digest of its contents>", "nvrtc <build id>" or "no assembler".
  const std::string& identity() const { return identity_; }

  struct Assembled {
    std::string cubin;
    std::string log;    // has the lines of ptxas -v
    std::string error;  // why there is no cubin; empty if there is one
  };

  /// Assembles the PTX that was made from `source`, with its target, register limit and, by ptxas only, its line
  /// information. It is an error if setmaxnreg is ignored or wgmma serialised (messages C75xx of ptxas).
  /// @throws ToolchainNotFound when there is no assembler; whatever check_interruption() throws.
  Assembled assemble(const Source& source, const std::string& ptx) const;

 private:
  Assembled run_ptxas(const Source& source, const std::string& ptx) const;
  Assembled run_nvrtc(const Source& source, const std::string& ptx) const;

  CompilerLimits limits_;
  bool stays_in_process_;
  Search ptxas_;
  Search nvrtc_;  // searched if there is no ptxas
  std::string identity_;
};

/// Whether there is an assembler, and where: for `doctor`.
Search find_assembler(const Environment& environment);

/// The lines of an assembler's log with messages C7500 to C7599: setmaxnreg was ignored, or wgmma serialised.
std::string lost_performance(std::string_view log);
/// The reason of a compile error for a log that has such lines.
inline constexpr std::string_view kLostPerformance = "the assembler ignored setmaxnreg or serialised wgmma";

}  // namespace tilewright::compile
