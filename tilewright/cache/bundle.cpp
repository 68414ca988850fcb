#include "tilewright/cache/bundle.hpp"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/cache/database.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {
namespace {

constexpr std::int64_t kFormat = 2;                // PRAGMA user_version
constexpr std::int64_t kApplication = 0x54574b43;  // PRAGMA application_id: "TWKC"

/// The digest that a signature covers. It includes the source, which the artifact names, and the code.
Digest signed_digest(std::span<const std::byte> artifact) {
  FieldHasher hasher;
  hasher.field("purpose", "kernel in a bundle of Tilewright").field("artifact", sha256(artifact).hex());
  return hasher.finish();
}

BundleReport export_kernels(Store& store, const Database& database, const SigningKey* key) {
  database.run("PRAGMA application_id = 1415007043");  // kApplication: a pragma takes no parameter
  database.run("PRAGMA user_version = 2");
  database.run(
      "CREATE TABLE kernels (source BLOB PRIMARY KEY, name TEXT NOT NULL, target TEXT NOT NULL, compiler TEXT NOT "
      "NULL, "
      "artifact BLOB NOT NULL, signature BLOB, created INTEGER NOT NULL) WITHOUT ROWID");
  database.run("BEGIN");
  // If several compilers compiled the same source, only the first artifact is exported.
  Statement insert =
      database.prepare("INSERT INTO kernels VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (source) DO NOTHING");
  const std::int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  BundleReport report;
  for (const Key& kernel : store.keys()) {
    const ArtifactPtr artifact = store.find(kernel);
    if (!artifact) {
      report.refused.push_back(kernel.name() + ": it cannot be read");
      continue;
    }
    const std::string target = artifact->target.name();
    const std::vector<std::byte> bytes = compile::serialize(*artifact);
    const std::vector<std::byte> signature =
        key == nullptr ? std::vector<std::byte>() : key->sign(signed_digest(bytes));
    insert.bind(1, kernel.source.bytes);
    insert.bind(2, artifact->name);
    insert.bind(3, target);
    insert.bind(4, artifact->compiler);
    insert.bind(5, bytes);
    insert.bind(6, signature);
    insert.bind(7, now);
    insert.step();
    insert.reset();
    report.kernels += static_cast<int>(database.changes());
  }
  database.run("COMMIT");
  return report;
}

Support check_format(const Database& database) {
  static_assert(kApplication == 1415007043 && kFormat == 2, "as export_kernels() spells them");
  if (const std::int64_t id = database.integer("PRAGMA application_id"); id != kApplication) {
    return refuse("it is not a bundle of kernels: its application id is {:#x}, not {:#x}", id, kApplication);
  }
  if (const std::int64_t format = database.integer("PRAGMA user_version"); format != kFormat) {
    return refuse("it is a bundle of format version {}, this build reads version {}", format, kFormat);
  }
  if (database.integer("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'kernels'") != 1) {
    return refuse("it is not a bundle of kernels: it has no table 'kernels'");
  }
  return {};
}

/// Deserializes the artifact of one row, after checking its signature and that it was compiled from the row's source.
Result<compile::Artifact> read_row(const Digest& source, std::span<const std::byte> bytes,
                                   std::span<const std::byte> signature, std::span<const TrustedKey> trusted) {
  const auto is_signer = [&](const TrustedKey& key) { return key.verifies(signed_digest(bytes), signature); };
  if (!trusted.empty() && std::ranges::none_of(trusted, is_signer)) {
    return signature.empty() ? refuse("it is not signed") : refuse("no trusted key made its signature");
  }
  Result<compile::Artifact> artifact = compile::deserialize(bytes);
  if (artifact && artifact->source != source.hex())
    return refuse("the kernel of this row, {}, was compiled from another source", artifact->name);
  return artifact;
}

BundleReport import_kernels(Store& store, const Database& database, std::span<const TrustedKey> trusted) {
  BundleReport report;
  Statement select = database.prepare("SELECT source, artifact, signature FROM kernels");
  while (select.step()) {
    Digest source;
    const std::span<const std::byte> source_bytes = select.blob(0);
    if (source_bytes.size() != source.bytes.size()) {
      report.refused.push_back(
          fmt::format("a source digest of {} bytes instead of {}", source_bytes.size(), source.bytes.size()));
      continue;
    }
    std::ranges::copy(source_bytes, source.bytes.begin());
    Result<compile::Artifact> artifact = read_row(source, select.blob(1), select.blob(2), trusted);
    if (!artifact) {
      report.refused.push_back(fmt::format("{}: {}", source.hex(), artifact.reason()));
      continue;
    }
    store.insert({source, kImported}, std::make_shared<const compile::Artifact>(*std::move(artifact)));
    ++report.kernels;
  }
  return report;
}

/// Whether nobody but this user and root can have written the file.
Support check_owner(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return refuse("cannot stat it: {}", std::strerror(errno));
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return refuse("it belongs to uid {}: pass the public keys that you trust, or copy it first", status.st_uid);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refuse("others may write to it (mode {:04o}): pass the public keys that you trust, or chmod go-w it first",
                  status.st_mode & 07777);
  }
  return {};
}

}  // namespace

BundleReport export_bundle(Store& store, const std::string& path, const SigningKey* key) {
  // Written to a private folder beside `path`. If this process is killed, the next export deletes that folder.
  const std::size_t slash = path.rfind('/');
  const compile::ScopedFolder folder(slash == std::string::npos ? "." : path.substr(0, slash + 1));
  const std::string temporary = folder.path() + "/bundle.db";
  const BundleReport report =
      export_kernels(store, Database(temporary, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE), key);
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    throw Error(fmt::format("cannot rename {} to {}: {}", temporary, path, std::strerror(errno)));
  return report;
}

Result<BundleReport> import_bundle(Store& store, const std::string& path, std::span<const TrustedKey> trusted) {
  const auto refused = [&](std::string_view reason) { return refuse("{}: {}", printable(path, 400), reason); };
  try {
    const Result<compile::UniqueFd> opened = compile::open_regular_file(path);
    if (!opened) return refused(opened.reason());
    const int file = opened->get();
    if (const Support owner = trusted.empty() ? check_owner(file) : Support(); !owner) return refused(owner.reason());
    // Opens the descriptor that was checked, not the path. With immutable=1, SQLite neither replays nor writes a
    // journal.
    const Database database(fmt::format("file:/proc/self/fd/{}?immutable=1", file),
                            SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    if (const Support format = check_format(database); !format) return refused(format.reason());
    return import_kernels(store, database, trusted);
  } catch (const DatabaseError& error) {
    if (is_interrupted()) throw;
    if (error.code() == SQLITE_NOTADB) return refused("it is not a bundle, which is an SQLite database");
    return refused(error.what());
  } catch (const Error& error) {
    if (is_interrupted()) throw;
    return refused(error.what());
  }
}

}  // namespace tilewright::cache
