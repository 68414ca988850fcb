// One compiled kernel as a file: where it lies below the root of a cache, and its bytes.
//   entries/<2 hex digits>/<62 hex digits>-<16 hex digits>.twk    Key::name() with a '/' after the second digit
// The bytes are a magic number, the key and the serialized artifact, whose own digest covers the rest: the key must be
// the one that is asked for, and the artifact must name the key's source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/cache/key.hpp"
#include "tilewright/compile/artifact.hpp"

namespace tilewright::cache {

inline constexpr std::string_view kEntrySuffix = ".twk";
inline constexpr std::string_view kQuarantineSuffix = ".bad";

struct EntryName {
  std::string folder;  // "ab"
  std::string file;    // "cdef....twk"
};
EntryName entry_name(const Key& key);

/// Whether a file of that name below entries/`folder` is one that a cache makes: an entry, also of earlier versions of
/// this project, or one that was set aside. Nothing else is ever deleted.
bool is_cache_file(std::string_view folder, std::string_view file);

/// The key of an entry with that name; nothing for other files.
std::optional<Key> key_of_entry(std::string_view folder, std::string_view file);

std::vector<std::byte> encode_entry(const Key& key, const compile::Artifact& artifact);

/// What became of bytes that were read for a key.
struct DecodedEntry {
  std::optional<compile::Artifact> artifact;
  std::string damage;     // why they are proven to be damaged
  bool is_newer = false;  // written by a later version of this project, whose they stay
};
DecodedEntry decode_entry(const Key& key, std::span<const std::byte> bytes);

}  // namespace tilewright::cache
