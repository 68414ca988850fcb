// Exporting bundles from one store and importing them into another, and what an import refuses.
#include "tilewright/cache/bundle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/unit/cache/ed25519_keys.hpp"
#include "tests/unit/cache/fake_compiler.hpp"

namespace tilewright::cache {
namespace {

using testing::HasSubstr;

class BundleTest : public testing::Test {
 protected:
  StoreOptions at(const std::string& name) const {
    StoreOptions options;
    options.root = folder_.path() + "/" + name;
    return options;
  }
  void export_two() const {
    Store here(at("here"));
    here.get_or_compile(source_named("gemm"), compiler_);
    here.get_or_compile(source_named("conv"), compiler_);
    const BundleReport report = export_bundle(here, path_);
    EXPECT_EQ(report.kernels, 2);
    EXPECT_TRUE(report.refused.empty());
  }
  void run_sql(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  compile::ScopedFolder folder_{testing::TempDir()};
  FakeCompiler compiler_{folder_.path() + "/compiles"};
  std::string path_ = folder_.path() + "/compiled_cache.db";
  StoreOptions there_ = at("there");
};

TEST_F(BundleTest, CarriesKernelsToAnotherStore) {
  export_two();
  Store there(there_);
  const Result<BundleReport> report = import_bundle(there, path_);
  ASSERT_TRUE(report) << report.reason();
  EXPECT_EQ(report->kernels, 2);
  Store later(there_);
  EXPECT_EQ(*later.get_or_compile(source_named("gemm"), compiler_), compiler_.compile(source_named("gemm")));
  EXPECT_EQ(later.counters(), (Counters{.memory_hits = 0, .disk_hits = 1, .compiles = 0}));
}

TEST_F(BundleTest, ReplacesAnOlderFile) {
  compile::write_new_file(path_, "not a database");
  export_two();
  Store there(there_);
  EXPECT_EQ(import_bundle(there, path_)->kernels, 2);
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_FALSE(file.path().filename().string().starts_with("compiled_cache.db.")) << file.path();
  }
}

TEST_F(BundleTest, ADamagedKernelIsRefusedAndTheRestImported) {
  export_two();
  run_sql("UPDATE kernels SET artifact = substr(artifact, 1, 200) WHERE name = 'gemm'");
  run_sql(
      "INSERT INTO kernels SELECT x'00', name, target, compiler, artifact, signature, created FROM kernels WHERE name "
      "= 'conv'");
  Store there(there_);
  const Result<BundleReport> report = import_bundle(there, path_);
  ASSERT_TRUE(report) << report.reason();
  EXPECT_EQ(report->kernels, 1);
  EXPECT_THAT(report->refused,
              testing::ElementsAre(HasSubstr("source digest of 1 bytes"), HasSubstr("it is truncated")));
}

TEST_F(BundleTest, OtherFilesAreRefused) {
  Store there(there_);
  EXPECT_FALSE(import_bundle(there, folder_.path() + "/missing.db"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/missing.db"));
  compile::write_new_file(path_, std::string(5000, 'x'));
  EXPECT_THAT(import_bundle(there, path_).reason(), HasSubstr("it is not a bundle"));
  std::filesystem::remove(path_);
  run_sql("CREATE TABLE kernels (key BLOB, artifact BLOB)");
  EXPECT_THAT(import_bundle(there, path_).reason(), HasSubstr("application id"));
  EXPECT_TRUE(there.keys().empty());
}

TEST_F(BundleTest, AnotherFormatOrAViewInPlaceOfTheTableIsRefused) {
  export_two();
  run_sql("PRAGMA user_version = 3");
  Store there(there_);
  EXPECT_THAT(import_bundle(there, path_).reason(), HasSubstr("format version 3"));
  run_sql(
      "PRAGMA user_version = 2; ALTER TABLE kernels RENAME TO hidden; "
      "CREATE VIEW kernels AS SELECT source, artifact, signature FROM hidden");
  EXPECT_THAT(import_bundle(there, path_).reason(), HasSubstr("more than plain tables: CREATE VIEW kernels"));
}

TEST_F(BundleTest, ATruncatedFileNeverYieldsAWrongKernel) {
  export_two();
  const auto size = std::filesystem::file_size(path_);
  for (const std::uintmax_t left : {size - 1, size / 2, std::uintmax_t{4096}, std::uintmax_t{100}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(path_, left);
    Store there(at("there" + std::to_string(left)));
    const Result<BundleReport> report = import_bundle(there, path_);
    if (left <= size / 2) {
      EXPECT_TRUE(!report || report->kernels < 2) << left;
    }
    for (const char* name : {"gemm", "conv"}) {
      const ArtifactPtr taken = there.find({compile::source_digest(source_named(name)), kImported});
      if (taken) {
        EXPECT_EQ(*taken, compiler_.compile(source_named(name)));
      }
    }
  }
}

TEST_F(BundleTest, WithTrustedKeysOnlySignedKernelsAreImported) {
  compile::write_new_file(folder_.path() + "/a.pem", kPrivateKeyA);
  compile::write_new_file(folder_.path() + "/a.pub", kPublicKeyA);
  compile::write_new_file(folder_.path() + "/b.pub", kPublicKeyB);
  std::vector<TrustedKey> a, b;
  a.push_back(TrustedKey::read(folder_.path() + "/a.pub"));
  b.push_back(TrustedKey::read(folder_.path() + "/b.pub"));
  Store there(there_);
  export_two();
  EXPECT_THAT(import_bundle(there, path_, a)->refused, testing::Each(HasSubstr("is not signed")));
  const SigningKey key = SigningKey::read(folder_.path() + "/a.pem");
  Store here(at("here"));
  EXPECT_EQ(export_bundle(here, path_, &key).kernels, 2);
  EXPECT_THAT(import_bundle(there, path_, b)->refused, testing::Each(HasSubstr("no trusted key")));
  EXPECT_TRUE(there.keys().empty());
  run_sql("UPDATE kernels SET artifact = artifact || x'00' WHERE name = 'gemm'");
  const Result<BundleReport> report = import_bundle(there, path_, a);
  EXPECT_EQ(report->kernels, 1);
  EXPECT_THAT(report->refused, testing::ElementsAre(HasSubstr("no trusted key")));
}

TEST_F(BundleTest, AFileWritableByOthersNeedsTrustedKeys) {
  export_two();
  Store there(there_);
  std::filesystem::permissions(path_, std::filesystem::perms::all);
  EXPECT_THAT(import_bundle(there, path_).reason(), HasSubstr("others may write to it (mode 0777)"));
  EXPECT_TRUE(there.keys().empty());
}

TEST_F(BundleTest, AFifoDoesNotBlock) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  Store there(there_);
  EXPECT_THAT(import_bundle(there, path_).reason(), HasSubstr("not a regular file"));
}

TEST_F(BundleTest, NothingIsWrittenBesideABundle) {
  export_two();
  run_sql("PRAGMA journal_mode = WAL");
  Store there(there_);
  EXPECT_TRUE(import_bundle(there, path_));
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_FALSE(file.path().filename().string().starts_with("compiled_cache.db-")) << file.path();
  }
}

TEST_F(BundleTest, AnUnwritablePathThrows) {
  Store here(there_);
  EXPECT_THROW(export_bundle(here, "/proc/no/bundle.db"), Error);
}

}  // namespace
}  // namespace tilewright::cache
