// Tuning records: what is stored, which records a lookup returns, and what is deleted.
#include "tilewright/cache/tuning_records.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tilewright/cache/key.hpp"
#include "tilewright/compile/file.hpp"

namespace tilewright::cache {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TuningRecord record(const std::string& problem, const std::string& winner, std::int64_t measured_s = 1000) {
  return {.key = {"GPU", "0.1.0 abc", problem, "set"},
          .winner = winner,
          .median_us = 12.25,
          .report = "{}",
          .measured_s = measured_s};
}

KernelFault fault(const std::string& source, bool is_trial = false) {
  return {"GPU", "0.1.0 abc", source, "kernel of " + source, "p", "CUDA_ERROR_ILLEGAL_ADDRESS", 1000, is_trial};
}

class TuningRecordsTest : public testing::Test {
 protected:
  compile::ScopedFolder folder_{testing::TempDir()};
  TuningRecords records_{folder_.path()};
};

TEST_F(TuningRecordsTest, ReadingCreatesNoFile) {
  EXPECT_TRUE(records_.list()->empty());
  EXPECT_TRUE(records_.faults()->empty());
  EXPECT_TRUE(records_.choices("GPU", "0.1.0 abc")->empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(TuningRecordsTest, RecordsAreFoundByAnotherInstance) {
  ASSERT_TRUE(records_.remember(record("p", "first")));
  ASSERT_TRUE(records_.remember(record("q", "second", 2000)));
  const TuningRecords other(folder_.path());
  EXPECT_THAT(*other.list(), ElementsAre(record("q", "second", 2000), record("p", "first")));
  TuningRecord without_report = record("p", "first");
  without_report.report.clear();
  EXPECT_EQ(other.choices("GPU", "0.1.0 abc")->front(), without_report);
}

TEST_F(TuningRecordsTest, ReplacesOnlyRecordsOfEqualKey) {
  ASSERT_TRUE(records_.remember(record("p", "first")));
  ASSERT_TRUE(records_.remember(record("p", "second")));
  TuningRecord other_set = record("p", "third");
  other_set.key.kernels = "another set";
  ASSERT_TRUE(records_.remember(other_set));
  EXPECT_THAT(*records_.list(), ElementsAre(other_set, record("p", "second")));
}

TEST_F(TuningRecordsTest, ChoicesAreFilteredByDeviceAndLibrary) {
  TuningRecord other_device = record("p", "x");
  other_device.key.device = "another GPU";
  TuningRecord other_library = record("p", "y");
  other_library.key.library = "0.2.0 abc";
  for (const TuningRecord& each : {record("p", "z"), other_device, other_library}) {
    ASSERT_TRUE(records_.remember(each));
  }
  const auto choices = *records_.choices("GPU", "0.1.0 abc");
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_EQ(choices[0].winner, "z");
}

TEST_F(TuningRecordsTest, HostileTextIsStoredUnchanged) {
  const std::string hostile = "'; DROP TABLE choices; --\n\x1b[31m \xff";
  ASSERT_TRUE(records_.remember(record(hostile, hostile)));
  EXPECT_THAT(*records_.list(), ElementsAre(record(hostile, hostile)));
}

TEST_F(TuningRecordsTest, FaultsAreAddedReplacedAndRemoved) {
  ASSERT_TRUE(records_.note(fault("a", true)));
  ASSERT_TRUE(records_.note(fault("b", true)));
  ASSERT_TRUE(records_.note(fault("b")));
  EXPECT_THAT(*records_.faults(), ElementsAre(fault("a", true), fault("b")));
  ASSERT_TRUE(records_.take_back(fault("a")));
  EXPECT_THAT(*records_.faults(), ElementsAre(fault("b")));
}

TEST_F(TuningRecordsTest, ForgetsOneProblemOrAll) {
  for (const char* problem : {"p", "q", "r"}) ASSERT_TRUE(records_.remember(record(problem, "x")));
  ASSERT_TRUE(records_.note(fault("a")));
  EXPECT_EQ(*records_.forget("another GPU", "p"), 0);
  EXPECT_EQ(*records_.forget("GPU", "p"), 2) << "a choice and a fault";
  EXPECT_EQ(records_.list()->size(), 2U);
  EXPECT_EQ(*records_.forget("", ""), 2);
  EXPECT_TRUE(records_.list()->empty());
}

TEST_F(TuningRecordsTest, TheOldestRecordsAreDeletedFirst) {
  const TuningRecords few(folder_.path(), 3);
  for (const char* problem : {"0", "1", "2", "3", "4"}) {
    ASSERT_TRUE(few.remember(record(problem, "x", problem[0])));
  }
  EXPECT_THAT(*few.list(), ElementsAre(record("4", "x", '4'), record("3", "x", '3'), record("2", "x", '2')));
}

TEST_F(TuningRecordsTest, WithoutAFolderNothingIsStored) {
  const TuningRecords nowhere("");
  EXPECT_TRUE(nowhere.list()->empty());
  EXPECT_THAT(nowhere.remember(record("p", "x")).reason(), HasSubstr("no folder"));
  EXPECT_FALSE(nowhere.lock("GPU", 0.0));
  EXPECT_FALSE(std::filesystem::exists("/tuning_records.db"));
}

TEST_F(TuningRecordsTest, LocksAreSeparateForEachDevice) {
  const auto held = records_.lock("GPU", 0.0);
  EXPECT_TRUE(held);
  EXPECT_FALSE(TuningRecords(folder_.path()).lock("GPU", 0.01));
  EXPECT_TRUE(records_.lock("another GPU", 0.0));
}

TEST(LibraryIdentity, NamesTheVersion) {
  EXPECT_THAT(library_identity(), testing::MatchesRegex("[0-9.]+ [0-9a-f]{12}"));
}

}  // namespace
}  // namespace tilewright::cache
