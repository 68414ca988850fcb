// Many compiled kernels in one file, to compile here and run there: compiled_cache.db, a SQLite database. It is a means
// of transport; the live cache is files, since SQLite must not be shared over network disks.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/support.hpp"
#include "tilewright/cache/store.hpp"

namespace tilewright::cache {

struct BundleReport {
  int kernels = 0;                   // written or taken
  std::vector<std::string> refused;  // the others, each with the reason
};

/// Writes every kernel of the store to `path`, replacing it at once when complete.
/// @throws Error naming the call when the file cannot be written.
BundleReport export_bundle(Store& store, const std::string& path);

/// Takes the kernels of a bundle into the store. Each is checked as an entry of the cache is; one that is damaged is
/// refused and the rest is taken. Nothing in the file is run, but what is taken will be launched as the kernel that its
/// key names, and no hash can show that it is: importing a bundle is trusting who made it.
/// Refused as a whole: a file that is not a bundle or is of another format.
Result<BundleReport> import_bundle(Store& store, const std::string& path);

}  // namespace tilewright::cache
