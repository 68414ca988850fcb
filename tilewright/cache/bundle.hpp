// A bundle: many compiled kernels in one SQLite file (compiled_cache.db), to compile on one machine and run on another.
// Bundles are only for transport; the cache itself is a folder of files, because SQLite databases must not be shared
// over network file systems.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/cache/signature.hpp"
#include "tilewright/cache/store.hpp"

namespace tilewright::cache {

struct BundleReport {
  int kernels = 0;                   // exported or imported
  std::vector<std::string> refused;  // one line for each other kernel, with the reason
};

/// Writes every kernel of the store to `path`, replacing the file atomically; signs each with `key`, if given.
/// @throws Error naming the failed call when the file cannot be written.
BundleReport export_bundle(Store& store, const std::string& path, const SigningKey* key = nullptr);

/// Imports the kernels of a bundle into the store. An imported kernel is used for its source whatever the local
/// compiler is, or if there is none. Each kernel is checked like a cache entry; damaged ones are refused, the others
/// imported. With `trusted` keys, kernels without a signature by one of them are refused too. Without keys, whoever can
/// write the file is trusted, because no digest can prove that code does what its metadata says; the file must then
/// belong to this user or root, and nobody else may have write permission. A file is refused as a whole when it is not
/// a regular file, not a bundle, or of another format version.
Result<BundleReport> import_bundle(Store& store, const std::string& path, std::span<const TrustedKey> trusted = {});

}  // namespace tilewright::cache
