// What a kernel is made of: its text, the headers it may include, the target, the options.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/hash.hpp"
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

/// What Source::text is. PTX and cubins need no compiler: the driver takes both, the emulator takes PTX.
enum class Language : std::uint8_t { cuda, ptx, cubin };

std::string_view name(Language language);  // "cuda"

/// A header that a kernel's author brings: `#include "name"` finds `text`, before any of ours.
struct AuthorsHeader {
  std::string name;
  std::string text;
  bool operator==(const AuthorsHeader&) const = default;
};

struct Source {
  std::string name;    // for messages and dumps: an identifier
  std::string symbol;  // the extern "C" kernel: an identifier
  std::string text;    // CUDA C++, PTX, or a cubin's bytes
  Target target;
  Language language = Language::cuda;
  std::vector<AuthorsHeader> headers;
  Outputs outputs;
  bool line_info = true;    // -lineinfo: a finding of the emulator or of a profiler names the source line
  int max_registers = 0;    // 0: the compiler decides
  std::string description;  // JSON about what this kernel is; kept in the artifact, hashed into the key
};

/// Whether it may be compiled or loaded: identifiers as name and symbol, text of at most 4 MiB (a cubin's 256) without
/// NUL but in a cubin (NVRTC would silently ignore what follows one), headers with relative names below no "..", some
/// output, a description that is empty or JSON, registers in 0..255.
Support validate(const Source& source);

/// Of all that determines the code but the compiler: library version, device headers, and every field.
Digest source_digest(const Source& source);

/// Of the device headers.
const Digest& device_headers_digest();

}  // namespace tilewright::compile
