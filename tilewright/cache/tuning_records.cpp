#include "tilewright/cache/tuning_records.hpp"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "tilewright/base/hash.hpp"
#include "tilewright/cache/database.hpp"
#include "tilewright/cache/key.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {
namespace {

constexpr const char* kFile = "tuning_records.db";
constexpr std::int64_t kFormat = 1;                // PRAGMA user_version
constexpr std::int64_t kApplication = 0x54575452;  // PRAGMA application_id: "TWTR"
constexpr int kReadBusyMs = 250;  // an engine starts without records rather than wait long for a writer
constexpr int kWriteBusyMs = 5000;
constexpr double kSetAsideTimeoutS = 5.0;
constexpr std::int64_t kMaxFileBytes = std::int64_t{256} << 20;  // 4096 records have about 40 MiB
constexpr int kMaxValueBytes = 4 << 20;                          // a report has kilobytes

constexpr const char* kLockFile = "locks";
constexpr std::int64_t kSetAsideLock = (std::int64_t{1} << 62) + 1;  // cache keys use bytes below 2^62, eviction 2^62
constexpr std::int64_t kFirstDeviceLock = kSetAsideLock + 1;

/// The file has another format version or belongs to another program; it is not changed.
class OtherFormat : public Error {
 public:
  using Error::Error;
};

void create(const Database& database) {
  database.run("PRAGMA application_id = 1415009362");  // kApplication: a pragma takes no parameter
  database.run("PRAGMA user_version = 1");
  database.run(
      "CREATE TABLE choices (device TEXT NOT NULL, library TEXT NOT NULL, problem TEXT NOT NULL, "
      "kernels TEXT NOT NULL, winner TEXT NOT NULL, median_us REAL NOT NULL, measured INTEGER NOT NULL, "
      "report TEXT NOT NULL, PRIMARY KEY (device, library, problem, kernels)) WITHOUT ROWID");
  database.run(
      "CREATE TABLE faults (device TEXT NOT NULL, library TEXT NOT NULL, source TEXT NOT NULL, kernel TEXT NOT NULL, "
      "problem TEXT NOT NULL, reason TEXT NOT NULL, noted INTEGER NOT NULL, is_trial INTEGER NOT NULL, "
      "PRIMARY KEY (device, library, source)) WITHOUT ROWID");
}

/// Whether the database has the tables of create(). False for a new, empty file. @throws OtherFormat
bool has_records(const Database& database) {
  static_assert(kApplication == 1415009362 && kFormat == 1, "as create() spells them");
  if (database.integer("SELECT EXISTS (SELECT 1 FROM sqlite_master)") == 0) return false;
  if (const std::int64_t id = database.integer("PRAGMA application_id"); id != kApplication) {
    throw OtherFormat(fmt::format("its application id is {:#x}, not {:#x}", id, kApplication));
  }
  if (const std::int64_t format = database.integer("PRAGMA user_version"); format != kFormat) {
    throw OtherFormat(fmt::format("its format version is {}, this build reads version {}", format, kFormat));
  }
  return true;
}

void begin_writing(const Database& database) {
  database.run("PRAGMA synchronous = OFF");
  database.run("BEGIN IMMEDIATE");
  if (!has_records(database)) create(database);
}

TuningRecord record_of(Statement& row) {
  return {.key = {row.text(0), row.text(1), row.text(2), row.text(3)},
          .winner = row.text(4),
          .median_us = row.real(5),
          .report = row.text(7),
          .measured_s = row.integer(6)};
}

std::vector<TuningRecord> records_of(Statement& rows) {
  std::vector<TuningRecord> records;
  while (rows.step()) records.push_back(record_of(rows));
  return records;
}

}  // namespace

TuningRecords::TuningRecords(std::string root, std::int64_t max_records)
    : root_(std::move(root)), path_(root_ + "/" + kFile), max_records_(max_records) {}

Result<FileLock> TuningRecords::lock(const std::string& device, double timeout_s) const {
  if (root_.empty()) return refuse("there is no folder for tuning records");
  const compile::UniqueFd root(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root) return refuse("{}: {}", root_, std::strerror(errno));
  const auto place = static_cast<std::int64_t>(DigestHash{}(sha256(device)) >> 3);  // below 2^61
  return FileLock::acquire(root.get(), kLockFile, kFirstDeviceLock + place, timeout_s);
}

// Symbolic links, files with several hard links, FIFOs and files of other users are neither read nor written.
Support TuningRecords::check_file() const {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) != 0) {
    return errno == ENOENT ? Support() : refuse("{}: {}", path_, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return refuse("{} is not a regular file", path_);
  if (status.st_uid != ::geteuid()) return refuse("{} belongs to uid {}", path_, status.st_uid);
  if (status.st_nlink > 1) return refuse("{} has {} links", path_, status.st_nlink);
  if (status.st_size > kMaxFileBytes)
    return refuse("{} has {} bytes, the limit is {}", path_, status.st_size, kMaxFileBytes);
  return {};
}

Database TuningRecords::open(int flags, int busy_timeout_ms) const {
  return {path_, flags | SQLITE_OPEN_NOFOLLOW, {.busy_timeout_ms = busy_timeout_ms, .max_value_bytes = kMaxValueBytes}};
}

Support TuningRecords::attempt(const Work& work, bool writes) const {
  if (const Support safe = check_file(); !safe) return safe;
  if (!writes && ::access(path_.c_str(), F_OK) != 0) return {};
  const int flags = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const Database database = open(flags, writes ? kWriteBusyMs : kReadBusyMs);
  try {
    if (writes) begin_writing(database);
    if (writes || has_records(database)) work(database);
    if (writes) database.run("COMMIT");  // if an exception skips this, closing the connection rolls back
  } catch (const OtherFormat& other) {
    return refuse("{} is not used: {}", path_, other.what());
  }
  return {};
}

Support TuningRecords::read(const Work& work) const {
  if (root_.empty()) return {};
  try {
    return attempt(work, false);
  } catch (const DatabaseError& error) {
    if (!error.is_damage()) return refuse("{}: {}", path_, error.what());
    return refuse("{} is {}: {}", path_, set_aside() ? "damaged and set aside" : "damaged", error.what());
  }
}

Support TuningRecords::write(const Work& work) const {
  if (root_.empty()) return refuse("there is no folder for tuning records");
  for (bool is_first = true;; is_first = false) {
    try {
      return attempt(work, true);
    } catch (const DatabaseError& error) {
      if (!is_first || !error.is_damage() || !set_aside()) return refuse("{}: {}", path_, error.what());
    }
  }
}

// Renames the damaged file to .bad, replacing an earlier one. The file is checked again under a lock, because another
// process may already have replaced it by an intact one; it is kept if that check fails for any reason other than
// damage. The journal is deleted first: SQLite would apply it to a new file of the same name and damage that one too.
bool TuningRecords::set_aside() const {
  const compile::UniqueFd root(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root) return false;
  const auto lock = FileLock::acquire(root.get(), kLockFile, kSetAsideLock, kSetAsideTimeoutS);
  if (!lock || !check_file()) return false;
  try {
    const Database database = open(SQLITE_OPEN_READONLY, kReadBusyMs);
    has_records(database);
    Statement check = database.prepare("PRAGMA quick_check(1)");
    if (check.step() && check.text(0) == "ok") return true;
  } catch (const DatabaseError& error) {
    if (!error.is_damage()) return false;
  } catch (const OtherFormat&) {
    return false;
  }
  ::unlink((path_ + "-journal").c_str());
  return std::rename(path_.c_str(), (path_ + ".bad").c_str()) == 0 || errno == ENOENT;
}

Result<std::vector<TuningRecord>> TuningRecords::choices(const std::string& device, const std::string& library) const {
  std::vector<TuningRecord> records;
  const Support done = read([&](const Database& database) {
    Statement rows = database.prepare(
        "SELECT device, library, problem, kernels, winner, median_us, measured, '' FROM choices "
        "WHERE device = ?1 AND library = ?2");
    rows.bind(1, device);
    rows.bind(2, library);
    records = records_of(rows);
  });
  if (!done) return done.refusal();
  return records;
}

Result<std::vector<TuningRecord>> TuningRecords::list() const {
  std::vector<TuningRecord> records;
  const Support done = read([&](const Database& database) {
    Statement rows =
        database.prepare("SELECT device, library, problem, kernels, winner, median_us, measured, report FROM choices");
    records = records_of(rows);
  });
  if (!done) return done.refusal();
  // Not sorted by SQLite, which would use unbounded memory for a hostile file.
  std::sort(records.begin(), records.end(), [](const TuningRecord& x, const TuningRecord& y) {
    return std::tie(y.measured_s, x.key) < std::tie(x.measured_s, y.key);
  });
  return records;
}

Result<std::vector<KernelFault>> TuningRecords::faults() const {
  std::vector<KernelFault> faults;
  const Support done = read([&](const Database& database) {
    Statement rows =
        database.prepare("SELECT device, library, source, kernel, problem, reason, noted, is_trial FROM faults");
    while (rows.step()) {
      faults.push_back({rows.text(0), rows.text(1), rows.text(2), rows.text(3), rows.text(4), rows.text(5),
                        rows.integer(6), rows.integer(7) != 0});
    }
  });
  if (!done) return done.refusal();
  std::sort(faults.begin(), faults.end(), [](const KernelFault& x, const KernelFault& y) {
    return std::tie(y.noted_s, x.device, x.kernel) < std::tie(x.noted_s, y.device, y.kernel);
  });
  return faults;
}

Support TuningRecords::remember(const TuningRecord& record) const {
  return write([&](const Database& database) {
    Statement insert = database.prepare("INSERT OR REPLACE INTO choices VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    insert.bind(1, record.key.device);
    insert.bind(2, record.key.library);
    insert.bind(3, record.key.problem);
    insert.bind(4, record.key.kernels);
    insert.bind(5, record.winner);
    insert.bind(6, record.median_us);
    insert.bind(7, record.measured_s);
    insert.bind(8, record.report);
    insert.step();
    Statement trim = database.prepare(
        "DELETE FROM choices WHERE measured < "
        "(SELECT measured FROM choices ORDER BY measured DESC LIMIT 1 OFFSET ?1)");
    trim.bind(1, max_records_ - 1);
    trim.step();
  });
}

Support TuningRecords::note(const KernelFault& fault) const {
  return write([&](const Database& database) {
    Statement insert = database.prepare("INSERT OR REPLACE INTO faults VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    insert.bind(1, fault.device);
    insert.bind(2, fault.library);
    insert.bind(3, fault.source);
    insert.bind(4, fault.kernel);
    insert.bind(5, fault.problem);
    insert.bind(6, fault.reason);
    insert.bind(7, fault.noted_s);
    insert.bind(8, std::int64_t{fault.is_trial});
    insert.step();
  });
}

Support TuningRecords::take_back(const KernelFault& fault) const {
  return write([&](const Database& database) {
    Statement remove = database.prepare("DELETE FROM faults WHERE device = ?1 AND library = ?2 AND source = ?3");
    remove.bind(1, fault.device);
    remove.bind(2, fault.library);
    remove.bind(3, fault.source);
    remove.step();
  });
}

Result<std::int64_t> TuningRecords::forget(const std::string& device, const std::string& problem) const {
  std::int64_t count = 0;
  const bool all = device.empty() && problem.empty();
  const Support done = write([&](const Database& database) {
    count = 0;
    for (const char* sql : {"DELETE FROM choices WHERE ?1 OR (device = ?2 AND problem = ?3)",
                            "DELETE FROM faults WHERE ?1 OR (device = ?2 AND problem = ?3)"}) {
      Statement remove = database.prepare(sql);
      remove.bind(1, std::int64_t{all});
      remove.bind(2, device);
      remove.bind(3, problem);
      remove.step();
      count += database.changes();
    }
  });
  if (!done) return done.refusal();
  return count;
}

}  // namespace tilewright::cache
