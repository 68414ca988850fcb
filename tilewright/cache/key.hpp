// What names a compiled kernel: a digest of everything that its bytes depend on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tilewright/base/hash.hpp"
#include "tilewright/compile/source.hpp"

namespace tilewright::cache {

using Key = Digest;

/// SHA-256 over tagged, length-prefixed fields: schema, project version, name, symbol, text, target, outputs, options,
/// description, every in-memory header, the compiler's identity. Not in it: paths, process, time, machine, so the same
/// kernel has the same key everywhere. Takes microseconds: the headers are hashed once a process.
Key make_key(const compile::Source& source, std::string_view compiler_identity);

/// "0.1.0 0123456789ab": the project's version, and a digest of the headers that kernels include.
std::string library_identity();

/// The inverse of Key::hex().
std::optional<Key> parse_key(std::string_view hex);

/// Keys are uniform already: any eight bytes are a hash.
struct KeyHash {
  std::size_t operator()(const Key& key) const;
};

}  // namespace tilewright::cache
