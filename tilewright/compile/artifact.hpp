// A compiled kernel: its cubin, its PTX and their metadata. Compilers produce it, the cache stores it.
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
  std::vector<std::byte> cubin;    // empty when not requested
  std::string ptx;                 // empty when not requested
  std::optional<int> registers;    // per thread, as ptxas -v reports them
  std::optional<int> spill_bytes;  // stores + loads per thread, as ptxas -v reports them
  std::int64_t static_smem_bytes = 0;
  std::string compiler;     // backend and the compiler's own version: "nvrtc 13.0 V13.0.88 CL-36424714"
  double compile_ms = 0.0;  // wall time of the compile
  std::string description;  // as Source::description
  std::string source;       // source_digest() of the compiled source, in hexadecimal; empty when unknown

  bool operator==(const Artifact&) const = default;
};

/// Wraps PTX or a cubin that the user supplied in an artifact; nothing is compiled. @pre source.language is ptx or
/// cubin
/// @throws InvalidArgument when validate(source) refuses.
Artifact precompiled_artifact(const Source& source);

/// One self-contained byte string: magic, format version, SHA-256 of all that follows, JSON metadata, cubin, PTX.
/// @throws InvalidArgument when a text field is not UTF-8.
std::vector<std::byte> serialize(const Artifact& artifact);

/// The inverse of serialize(). The refusal says what is wrong when the bytes are truncated, altered, of another format
/// version, or not as long as their header claims.
Result<Artifact> deserialize(std::span<const std::byte> bytes);

/// Whether the bytes begin with the header of an artifact that a later version of this project wrote.
bool is_of_newer_format(std::span<const std::byte> bytes);

/// Whether the artifact claims to be compiled from `source`: compares name, symbol, target and source digest. The code
/// itself cannot be verified that way; for that, the compiler or the signer of a bundle is trusted.
Support check_made_from(const Artifact& artifact, const Source& source);

/// Writes serialize(artifact) to a file, which is replaced atomically. @throws Error naming the path and the cause.
void write_artifact(const Artifact& artifact, const std::string& path);

/// Reads the file and refuses what deserialize() refuses, naming the path. @throws Error when the file cannot be read.
Result<Artifact> read_artifact(const std::string& path);

}  // namespace tilewright::compile
