// The output of a compiler, the same for all backends, and its conversion to an Artifact.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/source.hpp"

namespace tilewright::compile {

struct CompilerOutput {
  std::string cubin;  // raw bytes; empty when not requested
  std::string ptx;    // always present, even when not requested: its leading comment names the compiler
  std::string log;    // contains the lines of ptxas -v
};

/// "13.0 V13.0.88 CL-36424714", from the comment at the beginning of the PTX; empty when there is none.
std::string compiler_named_in(std::string_view ptx);

/// Keeps the outputs that `source` requests. `compiler` is Artifact::compiler; `started` is when the compile began.
Artifact make_artifact(const Source& source, std::string compiler, CompilerOutput output,
                       std::chrono::steady_clock::time_point started);

/// Checks that the artifact's PTX, if there is any, has an entry with its symbol.
/// @throws CompileError naming the symbol and the entries
void check_has_kernel(const Artifact& artifact);

}  // namespace tilewright::compile
