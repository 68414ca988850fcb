// Many compiled kernels in one file, to compile here and run there: compiled_cache.db, a SQLite database. It is a means
// of transport; the live cache is files, since SQLite must not be shared over network disks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/cache/signature.hpp"
#include "tilewright/cache/store.hpp"

namespace tilewright::cache {

struct BundleReport {
  int kernels = 0;                   // written or taken
  std::vector<std::string> refused;  // the others, each with the reason
};

/// Writes every kernel of the store to `path`, replacing it at once when complete; each is signed with `key`, if given.
/// @throws Error naming the call when the file cannot be written.
BundleReport export_bundle(Store& store, const std::string& path, const SigningKey* key = nullptr);

/// Takes the kernels of a bundle into the store, where each serves its source whatever the compiler here is, and also
/// where there is none. Each is checked as an entry of the cache is; one that is damaged is refused and the rest is
/// taken. With `trusted` keys, a kernel without a signature by one of them is refused too. Without, importing is
/// trusting whoever could write the file: no digest can show that code is what its name says, and the file must belong
/// to this user or to root and be writable by nobody else.
/// Refused as a whole: a file that is not a regular file, not a bundle, or of another format.
Result<BundleReport> import_bundle(Store& store, const std::string& path, std::span<const TrustedKey> trusted = {});

}  // namespace tilewright::cache
