// What a compile gives and a cache keeps: cubin and PTX of one kernel, and what is known about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/base/target.hpp"
#include "tilewright/compile/source.hpp"

namespace tilewright::compile {

struct Artifact {
  std::string name;    // as Source::name
  std::string symbol;  // the kernel's symbol in cubin and PTX
  Target target;
  std::vector<std::byte> cubin;    // empty when not asked for
  std::string ptx;                 // empty when not asked for
  std::optional<int> registers;    // per thread; from the cubin
  std::optional<int> spill_bytes;  // stores + loads per thread, as ptxas -v reports them
  std::int64_t static_smem_bytes = 0;
  std::string compiler;     // as it calls itself: "nvrtc 13.0 V13.0.88 CL-36424714"
  double compile_ms = 0.0;  // wall time of the compile that made it
  std::string description;  // as Source::description
  std::string source;       // source_digest() of what it was made of, in hexadecimal; empty: not known

  bool operator==(const Artifact&) const = default;
};

/// Of code that needs no compiler. @pre source.language is not cuda
/// @throws InvalidArgument where validate(source) refuses.
Artifact adopt(const Source& source);

/// One self-contained byte string: magic, format version, SHA-256 of all that follows, JSON metadata, payloads.
std::vector<std::byte> serialize(const Artifact& artifact);

/// Refuses, with what was wrong, bytes that are truncated, altered, of another format or larger than claimed.
Result<Artifact> deserialize(std::span<const std::byte> bytes);

/// Whether the bytes begin as those of an artifact that a later version of this project wrote.
bool is_of_newer_format(std::span<const std::byte> bytes);

/// Whether this is what compiling `source` gives: its name, symbol, target and source digest. No digest can show that
/// the code itself is; the compiler, or whoever signed a bundle, is trusted for that.
Support check_made_from(const Artifact& artifact, const Source& source);

/// serialize() into a file, which is replaced at once when complete. @throws Error naming the path and the cause.
void write_artifact(const Artifact& artifact, const std::string& path);

/// Refuses what deserialize() does, with the path; never hands damaged bytes on. @throws Error where it cannot be read.
Result<Artifact> read_artifact(const std::string& path);

}  // namespace tilewright::compile
