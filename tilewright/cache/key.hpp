// The cache key of a compiled kernel: digests of everything that its code depends on. The key does not depend on paths,
// times or machines, so the same kernel has the same key everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tilewright/base/hash.hpp"
#include "tilewright/compile/source.hpp"

namespace tilewright::cache {

struct Key {
  Digest source;               // compile::source_digest(): everything but the compiler
  std::uint64_t compiler = 0;  // a digest of Compiler::identity(), or kImported

  /// "<64 hexadecimal digits of the source>-<16 of the compiler>".
  std::string name() const;
  auto operator<=>(const Key&) const = default;
};

/// Key::compiler of an imported kernel, which is used whatever the compiler of this machine is.
inline constexpr std::uint64_t kImported = 0;

/// Takes microseconds, because each different set of included device headers is hashed only once per process.
Key make_key(const compile::Source& source, std::string_view compiler_identity);

/// "0.1.0 0123456789ab": the project's version, and the first digits of a digest of all device headers. Unlike a key,
/// it changes with every device header.
std::string library_identity();

/// The inverse of Key::name().
std::optional<Key> parse_key(std::string_view name);
/// The inverse of Digest::hex().
std::optional<Digest> parse_digest(std::string_view hex);

/// The first eight bytes of a digest, which are uniformly distributed.
struct DigestHash {
  std::size_t operator()(const Digest& digest) const;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const { return DigestHash()(key.source) ^ key.compiler; }
};

}  // namespace tilewright::cache
