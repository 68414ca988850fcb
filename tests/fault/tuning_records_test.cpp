// Tuning records on a disk that fails: never an exception, never a wrong record, and what can be kept is kept.
#include "tilewright/cache/tuning_records.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <random>
#include <thread>

#include "tests/fault/fault_fixture.hpp"

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

  compile::ScopedFolder folder_{testing::TempDir()};
  TuningRecords records_{folder_.path()};
};

TEST_F(TuningRecordsFaultTest, EightProcessesKeepAllTheyMeasured) {
  constexpr int kProcesses = 8;
  constexpr int kEach = 25;
  std::vector<Child> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.emplace_back([&, process] {
      const TuningRecords mine(folder_.path());
      for (int i = 0; i < kEach; ++i) {
        if (!mine.remember(record(fmt::format("{}/{}", process, i)))) return false;
        if (!mine.remember(record("shared")) || !mine.list()) return false;
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
      const TuningRecords mine(folder_.path());
      for (int i = 0;; ++i) {
        if (!mine.remember(record(fmt::format("{}", i % 50)))) return false;
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

TEST_F(TuningRecordsFaultTest, ADeadHolderOfTheLockIsReplaced) {
  Child holder([&] {
    const auto lock = records_.lock("GPU", 1.0);
    return lock && ::raise(SIGKILL) == 0;
  });
  EXPECT_FALSE(holder.succeeded());
  EXPECT_TRUE(records_.lock("GPU", 0.0));
}

TEST_F(TuningRecordsFaultTest, WhatIsNoDatabaseIsSetAside) {
  compile::write_new_file(
      file(), "not a database at all, but long enough to have a header of one hundred bytes" + std::string(100, '.'));
  const auto read = records_.list();
  ASSERT_FALSE(read);
  EXPECT_THAT(read.reason(), HasSubstr("damaged and set aside"));
  EXPECT_TRUE(fs::exists(file() + ".bad"));
  EXPECT_THAT(*records_.list(), IsEmpty()) << "begun anew";
  EXPECT_TRUE(records_.remember(record("p")));
  EXPECT_EQ(records_.list()->size(), 1U);
}

TEST_F(TuningRecordsFaultTest, AWriterBeginsAnewAtOnce) {
  compile::write_new_file(file(), std::string(4096, 'x'));
  EXPECT_TRUE(records_.remember(record("p")));
  EXPECT_EQ(records_.list()->size(), 1U);
}

TEST_F(TuningRecordsFaultTest, FlippedBitsAndCutFilesNeverThrow) {
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

TEST_F(TuningRecordsFaultTest, AnotherFormatIsLeftAlone) {
  fill(1);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "PRAGMA user_version = 2", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  EXPECT_THAT(records_.list().reason(), HasSubstr("its format is 2, this build knows 1"));
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

TEST_F(TuningRecordsFaultTest, AnUnwritableFolderServesWhatItHas) {
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

TEST_F(TuningRecordsFaultTest, AFullDiskRefusesAndKeepsWhatWasThere) {
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

}  // namespace
}  // namespace tilewright::cache
