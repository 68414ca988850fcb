// The input of a compile: the text of one kernel, the headers it may include, the target and the options.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/hash.hpp"
#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"

namespace tilewright::compile {

class IncludeGraph;

/// A header embedded in the library: `#include "name"` in a source includes `text`.
struct Header {
  std::string_view name;  // "tilewright/gemm/simt_gemm.cuh"
  std::string_view text;
  bool operator==(const Header&) const = default;
};

/// Every .cuh below device/, embedded at build time, sorted by name; the views have static storage duration.
const std::vector<Header>& device_headers();

/// The outputs that a compile shall produce. The emulator needs PTX, the driver a cubin; one NVRTC compile yields both.
struct Outputs {
  bool cubin = true;
  bool ptx = true;
  bool operator==(const Outputs&) const = default;
};

/// The language of Source::text. PTX and cubins are not compiled: the driver loads both, the emulator runs PTX. MLIR is
/// one module of the dialects llvm, nvvm, arith and cf, in the syntax of LLVM 22 (docs/decisions/mlir_lowering.md).
enum class Language : std::uint8_t { cuda, ptx, cubin, mlir };

inline constexpr std::array kLanguages{Language::cuda, Language::ptx, Language::cubin, Language::mlir};

std::string_view name(Language language);  // "cuda"

/// Whether a source of the language is compiled, rather than loaded as it is.
constexpr bool is_compiled(Language language) { return language == Language::cuda || language == Language::mlir; }

/// A header that comes with a user's own kernel: `#include "name"` includes `text`. It takes precedence over a device
/// header of the same name.
struct UserHeader {
  std::string name;
  std::string text;
  bool operator==(const UserHeader&) const = default;
};

struct Source {
  std::string name;    // used in messages and dumps; must be an identifier
  std::string symbol;  // name of the extern "C" kernel; must be an identifier
  std::string text;    // CUDA C++, MLIR, PTX, or the bytes of a cubin
  Target target;
  Language language = Language::cuda;
  std::vector<UserHeader> headers;
  /// Absolute paths of folders in which the compiler searches the headers that are not in memory. Their files are not
  /// part of the digest, so that a source with such folders must not be cached.
  std::vector<std::string> include_folders;
  Outputs outputs;
  bool line_info = true;  // -lineinfo: errors of the emulator and profilers can name the source line
  int max_registers = 0;  // 0: the compiler decides
  /// Whether the compile fails, as that of MLIR always does, if ptxas ignores setmaxnreg or serialises wgmma.
  bool refuses_lost_performance = false;
  std::string description;  // JSON that describes the kernel; stored in the artifact, part of the digest
};

/// Whether the source may be compiled or loaded. Requires: name and symbol are identifiers; the text has at most 4 MiB
/// and no NUL, after which NVRTC would silently ignore it (a cubin: at most 256 MiB); header names are relative paths
/// without "..", and MLIR has none; include folders are absolute paths; at least one output is requested; the
/// description is empty or JSON; 0 <= max_registers <= 255.
Support validate(const Source& source);

/// Digest of everything but the compiler that determines the code: library version, every field, and the device headers
/// that the source includes, directly or through other headers.
Digest source_digest(const Source& source);
/// The same with another set of headers in place of the device headers.
Digest source_digest(const Source& source, const IncludeGraph& headers);

/// Digest of the names and texts of all device headers; computed once.
const Digest& device_headers_digest();

}  // namespace tilewright::compile
