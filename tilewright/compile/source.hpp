// What a compiler is asked to compile: one kernel's text, the headers it may include, the target, the options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"

namespace tilewright::compile {

/// A header that travels in memory: `#include "name"` in the source finds `text`.
struct Header {
  std::string_view name;  // "tilewright/gemm/simt_gemm.cuh"
  std::string_view text;  // static storage: embedded in the library
  bool operator==(const Header&) const = default;
};

/// Every .cuh below device/, embedded at build time, sorted by name.
const std::vector<Header>& device_headers();

/// Which binary forms are wanted. The emulator needs PTX, the driver a cubin; one NVRTC compile yields both.
struct Outputs {
  bool cubin = true;
  bool ptx = true;
  bool operator==(const Outputs&) const = default;
};

struct Source {
  std::string name;    // for messages and dumps: an identifier
  std::string symbol;  // the extern "C" kernel: an identifier
  std::string text;    // CUDA C++
  Target target;
  Outputs outputs;
  bool line_info = true;    // -lineinfo: a finding of the emulator or of a profiler names the source line
  int max_registers = 0;    // 0: the compiler decides
  std::string description;  // JSON about what this kernel is; kept in the artifact, hashed into the key
};

/// Whether a compiler may be given it: identifiers as name and symbol, text of at most 4 MiB without NUL (NVRTC would
/// silently ignore what follows one), some output, a description that is empty or JSON, registers in 0..255.
Support validate(const Source& source);

}  // namespace tilewright::compile
