// A hostile SQLite file cannot execute code, run forever, use unbounded memory or block a reader.
#include "tilewright/cache/database.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "tests/unit/cache/fake_compiler.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/cache/bundle.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

class DatabaseTest : public testing::Test {
 protected:
  void run_sql(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  /// A file with the application id of a bundle and the given schema.
  void make_bundle(const std::string& schema) const {
    run_sql("PRAGMA application_id = 1415007043; PRAGMA user_version = 1; " + schema);
  }
  Database open(int flags = SQLITE_OPEN_READONLY, const DatabaseLimits& limits = {}) const {
    return {path_, flags, limits};
  }
  static DatabaseError error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const DatabaseError& error) {
      return error;
    }
    return {SQLITE_OK, "nothing was thrown"};
  }
  DatabaseError refusal() const {
    return error_of([this] { open(); });
  }

  compile::ScopedFolder folder_{testing::TempDir()};
  std::string path_ = folder_.path() + "/x.db";
};

TEST_F(DatabaseTest, AnEndlessViewIsRefused) {
  make_bundle(
      "CREATE VIEW kernels AS WITH RECURSIVE r(x) AS (SELECT zeroblob(32) UNION ALL SELECT x FROM r) "
      "SELECT x AS key, x AS artifact FROM r");
  EXPECT_THAT(refusal().what(), HasSubstr("more than plain tables: CREATE VIEW kernels AS"));
  EXPECT_FALSE(refusal().is_damage());
}

// Evaluating the column takes 30 million comparisons of 30 MB in one SQL function, which the progress handler cannot
// interrupt.
TEST_F(DatabaseTest, AComputedColumnThatTakesForeverIsRefused) {
  make_bundle(
      "CREATE TABLE kernels (key BLOB, artifact BLOB AS "
      "(replace(printf('%.*c', 60000000, 'a'), printf('%.*c', 30000000, 'a') || 'b', 'x')))");
  EXPECT_THAT(refusal().what(), HasSubstr("more than plain tables: CREATE TABLE kernels"));
  Store store({.root = folder_.path() + "/store"});
  const Result<BundleReport> report = import_bundle(store, path_);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.reason(), HasSubstr("more than plain tables"));
}

TEST_F(DatabaseTest, TriggersViewsAndComputedColumnsAreRefused) {
  for (const char* schema : {"CREATE TABLE t (a); CREATE TRIGGER x AFTER INSERT ON t BEGIN DELETE FROM t; END",
                             "CREATE TABLE t (a, b AS (zeroblob(200000000)))",
                             "CREATE TABLE t (a, b BLOB GENERATED ALWAYS AS (replace(a, a, a)) VIRTUAL)",
                             "CREATE TABLE t (a, b/**/as(zeroblob(9)))", "CREATE TABLE t (a CHECK (length(a) < 3))",
                             "CREATE TABLE t (a); CREATE INDEX x ON t (hex(a))", "CREATE VIRTUAL TABLE t USING fts5(a)",
                             "CREATE VIEW v AS SELECT 1"}) {
    std::filesystem::remove(path_);
    make_bundle(schema);
    EXPECT_THAT(refusal().what(), HasSubstr("more than plain tables: CREATE ")) << schema;
    EXPECT_EQ(refusal().code(), SQLITE_AUTH) << schema;
  }
}

TEST_F(DatabaseTest, PlainTablesAreUsed) {
  make_bundle(
      "CREATE TABLE t (as_key TEXT NOT NULL, basis BLOB DEFAULT 1, UNIQUE (basis), PRIMARY KEY (as_key)) "
      "WITHOUT ROWID; CREATE TABLE u (n INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES ('k', x'01')");
  EXPECT_EQ(open().integer("SELECT count(*) FROM t WHERE as_key = 'k'"), 1);
}

TEST_F(DatabaseTest, AnEndlessStatementEndsAtTheTimeLimit) {
  const Database database = open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, {.step_timeout_s = 0.05});
  const auto started = Clock::now();
  const DatabaseError error = error_of(
      [&] { database.integer("WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT max(x) FROM r"); });
  EXPECT_EQ(error.code(), SQLITE_INTERRUPT) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("exceeded the time limit of 0.05 s"));
  EXPECT_FALSE(error.is_damage());
  EXPECT_LT(Clock::now() - started, 2s);
  EXPECT_EQ(database.integer("SELECT 7"), 7) << "the next statement has a time limit of its own";
}

TEST_F(DatabaseTest, AStatementCanBeInterrupted) {
  const Database database = open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const auto end = Clock::now() + 50ms;
  const ScopedInterruptCheck check([&] {
    if (Clock::now() > end) throw Interrupted("enough");
  });
  EXPECT_THROW(database.integer("WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT max(x) FROM r"),
               Interrupted);
  EXPECT_LT(Clock::now() - end, 1s);
}

TEST_F(DatabaseTest, AWaitForALockEndsAtTheTimeLimitOrWhenInterrupted) {
  const Database holder = open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  holder.run("BEGIN EXCLUSIVE");
  auto started = Clock::now();
  const DatabaseError error = error_of([&] { open(SQLITE_OPEN_READWRITE, {.busy_timeout_ms = 100}); });
  EXPECT_EQ(error.code(), SQLITE_BUSY) << error.what();
  EXPECT_GE(Clock::now() - started, 100ms);
  started = Clock::now();
  const ScopedInterruptCheck check([&] {
    if (Clock::now() > started + 50ms) throw Interrupted("enough");
  });
  EXPECT_THROW(open(SQLITE_OPEN_READWRITE, {.busy_timeout_ms = 60000}), Interrupted);
  EXPECT_LT(Clock::now() - started, 10s);
}

TEST_F(DatabaseTest, AReleasedLockIsAcquired) {
  Database holder = open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  holder.run("BEGIN EXCLUSIVE");
  std::thread releaser([&] {
    std::this_thread::sleep_for(50ms);
    holder.run("COMMIT");
  });
  EXPECT_NO_THROW(open(SQLITE_OPEN_READWRITE, {.busy_timeout_ms = 60000}));
  releaser.join();
}

// Every interior page has 60 pointers to the same next page, so a file of eight pages appears to have 60^6 rows.
TEST_F(DatabaseTest, SharedPagesDoNotMultiplyRows) {
  constexpr std::size_t kPage = 512;
  constexpr unsigned kLevels = 6;
  constexpr unsigned kCells = 60;
  run_sql(
      "PRAGMA page_size = 512; PRAGMA application_id = 1415007043; PRAGMA user_version = 1; CREATE TABLE kernels (key "
      "BLOB, artifact BLOB); "
      "INSERT INTO kernels VALUES (zeroblob(32), zeroblob(100)), (zeroblob(32), zeroblob(100))");
  std::string file = compile::read_file(path_, 1 << 20);
  ASSERT_EQ(file.size(), 2 * kPage) << "the schema, and a leaf with the rows";
  const std::string leaf = file.substr(kPage);
  const auto big_endian = [](std::string& page, std::size_t at, unsigned value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) page[at + i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
  };
  for (unsigned level = 0; level < kLevels; ++level) {  // pages 2, 3, ...; the leaf is the last
    std::string page(kPage, '\0');
    constexpr std::size_t kCellBytes = 5;  // page number of the child, and a row id
    page[0] = 5;                           // type: interior page of a table
    big_endian(page, 3, kCells, 2);
    big_endian(page, 5, static_cast<unsigned>(kPage - kCells * kCellBytes), 2);
    big_endian(page, 8, level + 3, 4);
    for (unsigned cell = 0; cell < kCells; ++cell) {
      const std::size_t at = kPage - (cell + 1) * kCellBytes;
      big_endian(page, 12 + 2 * cell, static_cast<unsigned>(at), 2);
      big_endian(page, at, level + 3, 4);
      page[at + 4] = 1;
    }
    file.replace((level + 1) * kPage, kPage, page);
  }
  file += leaf;
  big_endian(file, 28, kLevels + 2, 4);  // pages of the file
  std::filesystem::remove(path_);
  compile::write_new_file(path_, file);

  const Database database = open();
  Statement rows = database.prepare("SELECT key, artifact FROM kernels");
  std::int64_t taken = 0;
  const auto started = Clock::now();
  const DatabaseError error = error_of([&] {
    for (; rows.step(); ++taken) rows.blob(1);
  });
  EXPECT_TRUE(error.is_damage()) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("more bytes than the file"));
  EXPECT_LT(taken, 20000);
  EXPECT_GT(taken, 100) << "the rows were read";
  EXPECT_LT(Clock::now() - started, 2s);
}

TEST_F(DatabaseTest, ValueSizesAreLimited) {
  make_bundle("CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(100000))");
  const Database database = open(SQLITE_OPEN_READONLY, {.max_value_bytes = 50000});
  const DatabaseError error = error_of([&] { database.integer("SELECT length(a || a) FROM t"); });
  EXPECT_EQ(error.code(), SQLITE_TOOBIG) << error.what();
  EXPECT_FALSE(error.is_damage());
}

TEST_F(DatabaseTest, FifosAndFoldersAreRefused) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(std::string(refusal().what()), path_ + " is not a regular file");
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(std::string(refusal().what()), path_ + " is not a regular file");
  std::filesystem::remove(path_);
  make_bundle("CREATE TABLE t (a)");
  for (const char* suffix : {"-journal", "-wal", "-shm"}) {
    ASSERT_EQ(::mkfifo((path_ + suffix).c_str(), 0600), 0);
    EXPECT_EQ(std::string(refusal().what()), path_ + suffix + " is not a regular file");
    EXPECT_FALSE(refusal().is_damage());
    std::filesystem::remove(path_ + suffix);
  }
  EXPECT_EQ(open().integer("SELECT count(*) FROM sqlite_schema"), 1);
}

TEST_F(DatabaseTest, SpecialNamesAreNotInterpreted) {
  for (const char* name : {":memory:", "", "file:x?mode=memory"}) {
    EXPECT_THROW(Database(name, SQLITE_OPEN_READONLY), DatabaseError) << name;
  }
}

TEST_F(DatabaseTest, LongTextsRoundTrip) {
  const Database database = open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  database.run("CREATE TABLE t (a TEXT)");
  const std::string text(std::size_t{8} << 20, 'x');
  Statement insert = database.prepare("INSERT INTO t VALUES (?1)");
  insert.bind(1, text);
  insert.step();
  Statement rows = database.prepare("SELECT a FROM t");
  ASSERT_TRUE(rows.step());
  EXPECT_EQ(rows.text(0), text);
}

}  // namespace
}  // namespace tilewright::cache
