// Tuning records on a failing disk: errors are refusals and never exceptions, no record is wrong, and intact records
// are kept.
#include "tilewright/cache/tuning_records.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "tests/fault/failing_calls.hpp"
#include "tests/fault/fault_fixture.hpp"
#include "tilewright/base/interruption.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

TuningRecord record(const std::string& problem) {
  return {.key = {"GPU", "0.1.0 abc", problem, "set"},
          .winner = "kernel of " + problem,
          .median_us = 1.5,
          .report = std::string(500, 'r'),
          .measured_s = 1000};
}

class TuningRecordsFaultTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string file() const { return at("tuning_records.db"); }
  void fill(int count) const {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(records_.remember(record(std::to_string(i))));
  }

  void run_sql(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  std::string bytes() const { return compile::read_file(file(), 1 << 20); }
  /// Expects that reads and writes are refused with that reason, and that the file is neither changed nor renamed.
  void expect_refused_and_unchanged(const std::string& reason) const {
    const std::string before = bytes();
    EXPECT_THAT(records_.list().reason(), HasSubstr(reason));
    EXPECT_THAT(records_.choices("GPU", "0.1.0 abc").reason(), HasSubstr(reason));
    EXPECT_THAT(records_.remember(record("new")).reason(), HasSubstr(reason));
    EXPECT_THAT(records_.forget("", "").reason(), HasSubstr(reason));
    EXPECT_EQ(bytes(), before);
    EXPECT_FALSE(fs::exists(file() + ".bad"));
  }

  compile::ScopedFolder folder_{testing::TempDir()};
  TuningRecords records_{folder_.path()};
};

TEST_F(TuningRecordsFaultTest, EightProcessesLoseNoRecord) {
  constexpr int kProcesses = 8;
  constexpr int kEach = 25;
  std::vector<Child> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.emplace_back([&, process] {
      const TuningRecords own(folder_.path());
      for (int i = 0; i < kEach; ++i) {
        if (!own.remember(record(fmt::format("{}/{}", process, i)))) return false;
        if (!own.remember(record("shared")) || !own.list()) return false;
      }
      return true;
    });
  }
  for (Child& child : children) EXPECT_TRUE(child.succeeded());
  EXPECT_EQ(records_.list()->size(), static_cast<std::size_t>(kProcesses * kEach + 1));
}

TEST_F(TuningRecordsFaultTest, AWriterThatIsKilledLeavesAllOrNothing) {
  using namespace std::chrono_literals;
  for (int round = 0; round < 20; ++round) {
    Child writer([&] {
      const TuningRecords own(folder_.path());
      for (int i = 0;; ++i) {
        if (!own.remember(record(fmt::format("{}", i % 50)))) return false;
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(3 + round));
    ::kill(writer.pid(), SIGKILL);
    writer.succeeded();
    ASSERT_TRUE(records_.remember(record("after"))) << records_.remember(record("after")).reason();
    const auto left = records_.list();
    ASSERT_TRUE(left);
    for (const TuningRecord& each : *left) ASSERT_EQ(each, record(each.key.problem));
  }
  EXPECT_FALSE(fs::exists(file() + ".bad"));
}

TEST_F(TuningRecordsFaultTest, TheLockOfADeadProcessIsReleased) {
  Child holder([&] {
    const auto lock = records_.lock("GPU", 1.0);
    return lock && ::raise(SIGKILL) == 0;
  });
  EXPECT_FALSE(holder.succeeded());
  EXPECT_TRUE(records_.lock("GPU", 0.0));
}

TEST_F(TuningRecordsFaultTest, AFileThatIsNotADatabaseIsSetAside) {
  compile::write_new_file(
      file(), "not a database at all, but long enough to have a header of one hundred bytes" + std::string(100, '.'));
  const auto read = records_.list();
  ASSERT_FALSE(read);
  EXPECT_THAT(read.reason(), HasSubstr("damaged and set aside"));
  EXPECT_TRUE(fs::exists(file() + ".bad"));
  EXPECT_THAT(*records_.list(), IsEmpty()) << "the damaged file is gone";
  EXPECT_TRUE(records_.remember(record("p")));
  EXPECT_EQ(records_.list()->size(), 1U);
}

TEST_F(TuningRecordsFaultTest, AWriteReplacesADamagedFile) {
  compile::write_new_file(file(), std::string(4096, 'x'));
  EXPECT_TRUE(records_.remember(record("p")));
  EXPECT_EQ(records_.list()->size(), 1U);
}

TEST_F(TuningRecordsFaultTest, FlippedBitsAndTruncationNeverThrow) {
  fill(40);
  const std::string bytes = compile::read_file(file(), 1 << 20);
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = bytes;
    if (i % 3 == 0) {
      damaged.resize(random() % damaged.size());
    } else {
      for (int flip = 0; flip < 8; ++flip) {
        const std::size_t bit = random() % (8 * damaged.size());
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      }
    }
    for (const char* suffix : {"", ".bad", "-journal"}) fs::remove(file() + suffix);
    compile::write_new_file(file(), damaged);
    static_cast<void>(records_.choices("GPU", "0.1.0 abc"));
    static_cast<void>(records_.list());
    const Support written = records_.remember(record("new"));
    EXPECT_TRUE(written || written.reason().find("tuning_records.db") != std::string::npos) << written.reason();
  }
}

TEST_F(TuningRecordsFaultTest, AnotherFormatVersionIsNotChanged) {
  fill(1);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "PRAGMA user_version = 2", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  EXPECT_THAT(records_.list().reason(), HasSubstr("its format version is 2, this build reads version 1"));
  EXPECT_FALSE(records_.remember(record("p")));
  EXPECT_FALSE(fs::exists(file() + ".bad"));
}

TEST_F(TuningRecordsFaultTest, ASymlinkOrASecondLinkIsNotFollowed) {
  fill(1);
  fs::rename(file(), at("elsewhere"));
  fs::create_symlink(at("elsewhere"), file());
  EXPECT_THAT(records_.list().reason(), HasSubstr("not a regular file"));
  EXPECT_THAT(records_.remember(record("p")).reason(), HasSubstr("not a regular file"));
  fs::remove(file());
  fs::create_hard_link(at("elsewhere"), file());
  EXPECT_THAT(records_.remember(record("p")).reason(), HasSubstr("2 links"));
}

TEST_F(TuningRecordsFaultTest, AFifoDoesNotBlock) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_FALSE(records_.list());
  EXPECT_FALSE(records_.remember(record("p")));
}

TEST_F(TuningRecordsFaultTest, AReadOnlyFolderIsStillRead) {
  fill(3);
  if (::mount(folder_.path().c_str(), folder_.path().c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "mounting is not allowed here";
  }
  ASSERT_EQ(::mount(nullptr, folder_.path().c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr), 0);
  EXPECT_EQ(records_.list()->size(), 3U);
  EXPECT_FALSE(records_.remember(record("p")));
  EXPECT_FALSE(records_.lock("GPU", 0.0));
  ::umount(folder_.path().c_str());
}

TEST_F(TuningRecordsFaultTest, AFullDiskRefusesNewRecordsAndKeepsOldOnes) {
  fs::create_directory(at("small"));
  if (::mount("none", at("small").c_str(), "tmpfs", 0, "size=128k,mode=0700") != 0) {
    GTEST_SKIP() << "mounting is not allowed here";
  }
  {
    const TuningRecords small(at("small"));
    Support kept;
    int count = 0;
    for (; kept && count < 1000; ++count) kept = small.remember(record(std::to_string(count)));
    EXPECT_LT(count, 1000);
    EXPECT_THAT(kept.reason(), HasSubstr("full"));
    EXPECT_EQ(small.list()->size(), static_cast<std::size_t>(count - 1));
  }
  ::umount(at("small").c_str());
}

TEST_F(TuningRecordsFaultTest, TheFolderVanishes) {
  fill(1);
  fs::remove_all(folder_.path());
  EXPECT_THAT(*records_.list(), IsEmpty());
  EXPECT_FALSE(records_.remember(record("p")));
  EXPECT_FALSE(records_.lock("GPU", 0.0));
}

TEST_F(TuningRecordsFaultTest, TemporaryErrorsDoNotSetTheFileAside) {
  if (!can_fail_system_calls()) GTEST_SKIP() << "seccomp filters are not allowed here";
  fill(3);
  const std::string before = bytes();
  const std::vector<std::pair<const char*, std::function<bool()>>> failures{
      {"EIO", [] { return fail_system_call(SYS_pread64, EIO); }},
      {"ESTALE", [] { return fail_system_call(SYS_pread64, ESTALE); }},
      {"EACCES", [] { return fail_system_call(SYS_openat, EACCES); }},
      {"ENOMEM", [] { return fail_system_call(SYS_openat, ENOMEM); }},
      {"ENFILE", [] { return fail_system_call(SYS_openat, ENFILE); }},
      {"out of memory", [] { return sqlite3_hard_heap_limit64(20000) >= 0; }},
  };
  for (const auto& [name, begin] : failures) {
    Child child([&, &begin = begin] {
      const TuningRecords own(folder_.path());
      if (!begin()) return false;
      const auto list = own.list();
      const Support kept = own.remember(record("new"));
      if (!list && !kept) return true;
      std::fprintf(stderr, "it worked\n");
      return false;
    });
    EXPECT_TRUE(child.succeeded()) << name;
    EXPECT_EQ(bytes(), before) << name;
    EXPECT_FALSE(fs::exists(file() + ".bad")) << name;
  }
  Child full(
      [&] { return fail_system_call(SYS_pwrite64, ENOSPC) && records_.list() && !records_.remember(record("new")); });
  EXPECT_TRUE(full.succeeded());
  Child locked([&] { return fail_system_call(SYS_fcntl, EAGAIN) && !records_.list(); });
  EXPECT_TRUE(locked.succeeded());
  EXPECT_FALSE(fs::exists(file() + ".bad"));
  EXPECT_EQ(records_.list()->size(), 3U);
}

// The first check finds damage, but the second fails because no descriptor is left: the file may have been replaced
// meanwhile, so it must be kept.
TEST_F(TuningRecordsFaultTest, TheFileIsKeptWhenTheSecondCheckFails) {
  compile::write_new_file(file(), std::string(4096, 'x'));
  Child child([&] {
    const int lowest = ::dup(0);
    const rlimit limit{static_cast<rlim_t>(lowest) + 2,
                       static_cast<rlim_t>(lowest) + 2};  // for the folder and the lock
    ::close(lowest);
    if (lowest < 0 || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    const auto list = records_.list();
    return !list && list.reason().find("damaged: SQLite") != std::string::npos;
  });
  EXPECT_TRUE(child.succeeded());
  EXPECT_FALSE(fs::exists(file() + ".bad"));
  EXPECT_THAT(records_.list().reason(), HasSubstr("damaged and set aside"));
}

TEST_F(TuningRecordsFaultTest, OnlyTheLatestDamagedFileIsKept) {
  for (int round = 0; round < 5; ++round) {
    fs::remove(file());
    compile::write_new_file(file(), std::string(4096, static_cast<char>('a' + round)));
    EXPECT_THAT(records_.list().reason(), HasSubstr("damaged and set aside"));
  }
  EXPECT_EQ(compile::read_file(file() + ".bad", 1 << 20), std::string(4096, 'e'));
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder_.path())) count += entry.path() != at("locks");
  EXPECT_EQ(count, 1U);
}

TEST_F(TuningRecordsFaultTest, AFolderNamedLikeTheDamagedFileIsKept) {
  fs::create_directories(file() + ".bad/precious");
  compile::write_new_file(file(), std::string(4096, 'x'));
  EXPECT_THAT(records_.list().reason(), HasSubstr("is damaged: "));
  EXPECT_FALSE(records_.remember(record("p")));
  EXPECT_TRUE(fs::exists(file() + ".bad/precious"));
}

TEST_F(TuningRecordsFaultTest, AnotherProgramsDatabaseIsNotChanged) {
  run_sql("PRAGMA application_id = 4660; CREATE TABLE precious (a); INSERT INTO precious VALUES (1)");
  expect_refused_and_unchanged("its application id is 0x1234");
}

TEST_F(TuningRecordsFaultTest, ASchemaOfMoreThanPlainTablesIsNotUsed) {
  for (const char* sql :
       {"CREATE TRIGGER act AFTER INSERT ON choices BEGIN DELETE FROM faults; END",
        "CREATE VIEW endless AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT x FROM r",
        "PRAGMA user_version = 2; CREATE INDEX newer ON choices (measured)",
        "ALTER TABLE faults ADD COLUMN slow AS (replace(reason, reason, reason))"}) {
    fs::remove(file());
    fill(1);
    run_sql(sql);
    expect_refused_and_unchanged("more than plain tables");
  }
}

// SQLite stores values of any type in a column; the resulting record names no existing kernel and is ignored.
TEST_F(TuningRecordsFaultTest, ValuesOfOtherTypesAreConverted) {
  fill(1);
  run_sql("UPDATE choices SET winner = x'00ff', median_us = 'soon', measured = x'07', report = 5");
  const auto list = records_.list();
  ASSERT_TRUE(list) << list.reason();
  EXPECT_EQ(list->front().winner, std::string("\0\xff", 2));
  EXPECT_EQ(list->front().median_us, 0.0);
  EXPECT_EQ(list->front().report, "5");
}

TEST_F(TuningRecordsFaultTest, HugeValuesAndFilesAreRefused) {
  fill(1);
  run_sql("UPDATE choices SET report = zeroblob(5000000)");
  EXPECT_THAT(records_.list().reason(), HasSubstr("too big"));
  EXPECT_TRUE(records_.choices("GPU", "0.1.0 abc")) << "reports are left out";
  fs::resize_file(file(), std::uintmax_t{300} << 20);
  EXPECT_THAT(records_.list().reason(), HasSubstr("has 314572800 bytes, the limit is 268435456"));
  EXPECT_THAT(records_.remember(record("p")).reason(), HasSubstr("has 314572800 bytes"));
  EXPECT_FALSE(fs::exists(file() + ".bad"));
}

TEST_F(TuningRecordsFaultTest, FoldersAndFilesOfOtherUsersAreRefused) {
  fs::create_directory(file());
  EXPECT_THAT(records_.list().reason(), HasSubstr("not a regular file"));
  EXPECT_FALSE(records_.remember(record("p")));
  fs::remove(file());
  fill(1);
  if (::chown(file().c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root gives files away";
  expect_refused_and_unchanged("belongs to uid 65534");
}

TEST_F(TuningRecordsFaultTest, AFifoBesideItDoesNotBlock) {
  fill(1);
  for (const char* suffix : {"-journal", "-wal"}) {
    ASSERT_EQ(::mkfifo((file() + suffix).c_str(), 0600), 0);
    expect_refused_and_unchanged("is not a regular file");
    fs::remove(file() + suffix);
  }
  EXPECT_EQ(records_.list()->size(), 1U);
}

TEST_F(TuningRecordsFaultTest, AWaitForAnotherWriterCanBeInterrupted) {
  using namespace std::chrono_literals;
  fill(1);
  sqlite3* holder = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &holder), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(holder, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto started = std::chrono::steady_clock::now();
  {
    const ScopedInterruptCheck check([&] {
      if (std::chrono::steady_clock::now() > started + 50ms) throw Interrupted("enough");
    });
    EXPECT_THROW(static_cast<void>(records_.remember(record("p"))), Interrupted);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - started, 3s) << "without an interruption it waits for 5 s";
  sqlite3_close(holder);
  EXPECT_TRUE(records_.remember(record("p")));
}

}  // namespace
}  // namespace tilewright::cache
