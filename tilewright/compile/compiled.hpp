// What both backends hold when the compiler has ended, and how an artifact is made of it.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "tilewright/compile/artifact.hpp"
#include "tilewright/compile/source.hpp"

namespace tilewright::compile {

struct Compiled {
  std::string cubin;  // raw bytes; empty when not made
  std::string ptx;    // may be there though not asked for: its head names the compiler
  std::string log;    // with the lines of ptxas -v
};

/// "13.0 V13.0.88 CL-36424714" from the comment at the head of PTX; empty when there is none.
std::string compiler_named_in(std::string_view ptx);

/// `backend`: "nvrtc" or "nvcc". Keeps the outputs that the source asks for.
Artifact make_artifact(const Source& source, std::string_view backend, Compiled compiled,
                       std::chrono::steady_clock::time_point started);

}  // namespace tilewright::compile
