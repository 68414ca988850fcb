#include "tilewright/cache/bundle.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tilewright/cache/database.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {
namespace {

constexpr std::int64_t kFormat = 1;                // PRAGMA user_version
constexpr std::int64_t kApplication = 0x54574b43;  // PRAGMA application_id: "TWKC"

BundleReport write_kernels(Store& store, const Database& database) {
  database.run("PRAGMA application_id = 1415007043");  // kApplication: a pragma takes no parameter
  database.run("PRAGMA user_version = 1");
  database.run(
      "CREATE TABLE kernels (key BLOB PRIMARY KEY, name TEXT NOT NULL, target TEXT NOT NULL, "
      "artifact BLOB NOT NULL, created INTEGER NOT NULL) WITHOUT ROWID");
  database.run("BEGIN");
  Statement insert = database.prepare("INSERT INTO kernels VALUES (?1, ?2, ?3, ?4, ?5)");
  const std::int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  BundleReport report;
  for (const Key& key : store.keys()) {
    const ArtifactPtr artifact = store.find(key);
    if (!artifact) {
      report.refused.push_back(key.hex() + ": not readable");
      continue;
    }
    const std::string target = artifact->target.name();
    const std::vector<std::byte> bytes = compile::serialize(*artifact);
    insert.bind(1, key.bytes);
    insert.bind(2, artifact->name);
    insert.bind(3, target);
    insert.bind(4, bytes);
    insert.bind(5, now);
    insert.step();
    insert.reset();
    ++report.kernels;
  }
  database.run("COMMIT");
  return report;
}

Support check_format(const Database& database) {
  static_assert(kApplication == 1415007043 && kFormat == 1, "as write_kernels() spells them");
  if (const std::int64_t id = database.integer("PRAGMA application_id"); id != kApplication) {
    return refuse("not a bundle of kernels: application id {:#x}, wanted {:#x}", id, kApplication);
  }
  if (const std::int64_t format = database.integer("PRAGMA user_version"); format != kFormat) {
    return refuse("bundle of format {}, this build reads {}", format, kFormat);
  }
  if (database.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'kernels'") != 1) {
    return refuse("not a bundle of kernels: it has no table of them");
  }
  return {};
}

BundleReport take_kernels(Store& store, const Database& database) {
  BundleReport report;
  Statement select = database.prepare("SELECT key, artifact FROM kernels");
  while (select.step()) {
    Key key;
    const std::span<const std::byte> key_bytes = select.blob(0);
    if (key_bytes.size() != key.bytes.size()) {
      report.refused.push_back(fmt::format("a key of {} bytes, wanted {}", key_bytes.size(), key.bytes.size()));
      continue;
    }
    std::copy(key_bytes.begin(), key_bytes.end(), key.bytes.begin());
    Result<compile::Artifact> artifact = compile::deserialize(select.blob(1));
    if (!artifact) {
      report.refused.push_back(fmt::format("{}: {}", key.hex(), artifact.reason()));
      continue;
    }
    store.insert(key, std::make_shared<const compile::Artifact>(*std::move(artifact)));
    ++report.kernels;
  }
  return report;
}

}  // namespace

BundleReport export_bundle(Store& store, const std::string& path) {
  std::string temporary = path + ".XXXXXX";
  compile::UniqueFd reserved(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!reserved) throw Error(fmt::format("cannot create {}: {}", temporary, std::strerror(errno)));
  try {
    const BundleReport report = write_kernels(store, Database(temporary, SQLITE_OPEN_READWRITE));
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
      throw Error(fmt::format("cannot rename {} to {}: {}", temporary, path, std::strerror(errno)));
    }
    return report;
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

Result<BundleReport> import_bundle(Store& store, const std::string& path) {
  try {
    const Database database(path, SQLITE_OPEN_READONLY);
    if (const Support format = check_format(database); !format) return refuse("{}: {}", path, format.reason());
    return take_kernels(store, database);
  } catch (const Error& error) {
    return refuse("{}: {}", path, error.what());
  }
}

}  // namespace tilewright::cache
