// The file format of a cache entry, which holds one compiled kernel, and its path below the root of the cache:
//   entries/<2 hex digits>/<62 hex digits>-<16 hex digits>.twk    Key::name() with a '/' after the second digit
// The file contains a magic number, the key and the serialized artifact, which has a digest of its own. A reader checks
// that the key is the requested one and that the artifact was compiled from the key's source.
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

/// Whether a file of that name below entries/`folder` was created by a cache: an entry, of this or an earlier version
/// of the project, or an entry that was set aside. Other files are never deleted.
bool is_cache_file(std::string_view folder, std::string_view file);

/// The key of the entry with that name; empty when the name is not that of an entry.
std::optional<Key> key_of_entry(std::string_view folder, std::string_view file);

std::vector<std::byte> encode_entry(const Key& key, const compile::Artifact& artifact);

/// The result of decode_entry(): exactly one member is set.
struct DecodedEntry {
  std::optional<compile::Artifact> artifact;
  std::string damage;     // why the bytes are certainly damaged
  bool is_newer = false;  // written by a later version of this project, which may still use the entry
};
DecodedEntry decode_entry(const Key& key, std::span<const std::byte> bytes);

}  // namespace tilewright::cache
