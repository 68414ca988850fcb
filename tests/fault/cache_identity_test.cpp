// The cache returns exactly the requested kernel: never one of another source, symbol or target. Imported and shared
// kernels are used with any compiler or none.
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "tests/fault/fault_fixture.hpp"
#include "tilewright/cache/bundle.hpp"
#include "tilewright/cache/disk.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

/// A compiler of another identity, which must not run.
class OtherCompiler final : public compile::Compiler {
 public:
  const std::string& identity() const override { return identity_; }
  compile::Artifact compile(const compile::Source&) const override { throw CompileError("the other compiler ran"); }

 private:
  std::string identity_ = "other 2";
};

class CacheIdentityTest : public FaultTest {
 protected:
  void write_entry(const Key& key, const compile::Artifact& artifact) const {
    const std::string path = entry_path(at("cache"), key);
    const std::vector<std::byte> bytes = encode_entry(key, artifact);
    fs::remove(path);
    compile::make_folders(fs::path(path).parent_path());
    compile::write_new_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void run_sql(const std::string& file, const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(at(file).c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  void export_two() const {
    Store store(options());
    store.get_or_compile(source_named("gemm"), compiler_);
    store.get_or_compile(source_named("conv"), compiler_);
    EXPECT_EQ(export_bundle(store, at("bundle.db")).kernels, 2);
  }
  StoreOptions elsewhere() const {
    StoreOptions there = options();
    there.root = at("there");
    return there;
  }

  Key key_ = make_key(source_named("gemm"), compiler_.identity());
};

TEST_F(CacheIdentityTest, AKernelOfAnotherSourceUnderTheRightNameIsDamage) {
  fill();
  write_entry(key_, compiler_.compile(source_named("conv")));
  EXPECT_THAT(Store(options()).verify().damaged, ElementsAre(HasSubstr("compiled from another source")));
  write_entry(key_, compiler_.compile(source_named("conv")));
  Store store(options());
  EXPECT_EQ(store.get_or_compile(source_named("gemm"), compiler_)->name, "gemm");
  EXPECT_THAT(store.warnings(), ElementsAre(HasSubstr("compiled from another source")));
}

TEST_F(CacheIdentityTest, AKernelWithForgedMetadataIsNotServed) {
  fill();
  for (const auto& lie : std::vector<std::function<void(compile::Artifact&)>>{
           [](compile::Artifact& a) { a.name = "conv"; },
           [](compile::Artifact& a) { a.symbol = "other"; },
           [](compile::Artifact& a) { a.target = kSm80; },
       }) {
    compile::Artifact artifact = compiler_.compile(source_named("gemm"));
    lie(artifact);
    write_entry(key_, artifact);
    Store store(options());
    EXPECT_EQ(*store.get_or_compile(source_named("gemm"), compiler_), compiler_.compile(source_named("gemm")));
    EXPECT_THAT(store.warnings(), ElementsAre(HasSubstr("is not used: the artifact's")));
  }
}

TEST_F(CacheIdentityTest, SwappedRowsOfABundleAreRefused) {
  export_two();
  run_sql("bundle.db",
          "CREATE TEMP TABLE old AS SELECT * FROM kernels; "
          "UPDATE kernels SET artifact = (SELECT artifact FROM old WHERE old.name != kernels.name)");
  Store there(elsewhere());
  const Result<BundleReport> report = import_bundle(there, at("bundle.db"));
  ASSERT_TRUE(report) << report.reason();
  EXPECT_EQ(report->kernels, 0);
  EXPECT_THAT(report->refused, testing::Each(HasSubstr("compiled from another source")));
}

TEST_F(CacheIdentityTest, ANewerFormatIsAMissAndIsKept) {
  fill();
  for (const auto& make_newer : std::vector<std::function<void(std::string&)>>{
           [](std::string& bytes) { bytes[3] = '3'; },         // format of the entry
           [](std::string& bytes) { bytes[4 + 40 + 4] = 9; },  // format of the artifact in the entry
       }) {
    std::string bytes = compile::read_file(entry(), 1 << 20);
    make_newer(bytes);
    fs::remove(entry());
    compile::write_new_file(entry(), bytes);
    Store store(options());
    EXPECT_NE(store.get_or_compile(source_named("gemm"), compiler_), nullptr);
    EXPECT_EQ(store.counters().compiles, 1);
    EXPECT_TRUE(store.warnings().empty());
    EXPECT_EQ(compile::read_file(entry(), 1 << 20), bytes) << "it belongs to the later version";
    fs::remove(entry());
    fill();
  }
}

TEST_F(CacheIdentityTest, AKernelCompiledHereIsUsedForItsCompilerOnly) {
  fill();
  EXPECT_THROW(Store(options()).get_or_compile(source_named("gemm"), OtherCompiler()), CompileError);
  Store without_compiler(options());
  ASSERT_NE(without_compiler.find_any(source_named("gemm")), nullptr);
  EXPECT_EQ(without_compiler.find_any(source_named("conv")), nullptr);
}

TEST_F(CacheIdentityTest, AnImportedKernelIsUsedWithAnyOrNoCompiler) {
  export_two();
  Store there(elsewhere());
  ASSERT_TRUE(import_bundle(there, at("bundle.db")));
  EXPECT_EQ(Store(elsewhere()).get_or_compile(source_named("gemm"), OtherCompiler())->name, "gemm");
  EXPECT_EQ(Store(elsewhere()).find_any(source_named("conv"))->name, "conv");
}

TEST_F(CacheIdentityTest, ASharedFolderIsReadAndNeverWritten) {
  fill();
  const std::string shared = at("cache");
  const auto before = fs::last_write_time(entry());
  fs::last_write_time(entry(), before - std::chrono::hours(5));
  StoreOptions layered = elsewhere();
  layered.shared_roots = {shared};
  Store store(layered);
  EXPECT_EQ(store.get_or_compile(source_named("gemm"), compiler_)->name, "gemm");
  EXPECT_EQ(store.get_or_compile(source_named("gemm"), OtherCompiler())->name, "gemm") << "whatever the compiler is";
  EXPECT_EQ(store.counters(), (Counters{.memory_hits = 0, .disk_hits = 2, .compiles = 0}));
  store.get_or_compile(source_named("new"), compiler_);
  EXPECT_EQ(std::distance(fs::directory_iterator(shared + "/entries"), {}), 1) << "new kernels go to the user's own";
  EXPECT_TRUE(fs::exists(entry_path(at("there"), make_key(source_named("new"), compiler_.identity()))));
  EXPECT_EQ(fs::last_write_time(entry()), before - std::chrono::hours(5));
  fs::resize_file(entry(), 100);
  Store next(layered);
  EXPECT_EQ(next.get_or_compile(source_named("gemm"), compiler_)->name, "gemm");
  EXPECT_THAT(next.warnings(), ElementsAre(HasSubstr("is damaged")));
  EXPECT_TRUE(fs::exists(entry())) << "entries of shared folders are never set aside";
}

TEST_F(CacheIdentityTest, AnUnsafeSharedFolderIsNotUsed) {
  fill();
  StoreOptions layered = elsewhere();
  layered.shared_roots = {at("cache"), at("missing"), folder_.path()};
  ASSERT_EQ(::chmod(at("cache").c_str(), 0777), 0);
  Store store(layered);
  EXPECT_THAT(store.warnings(), ElementsAre(HasSubstr("others may write to it"), HasSubstr("No such file"),
                                            HasSubstr("it is not a cache of Tilewright")));
  store.get_or_compile(source_named("gemm"), compiler_);
  EXPECT_EQ(store.counters().compiles, 1);
}

TEST_F(CacheIdentityTest, AKernelThatNoDeviceLoadsIsDiscardedOnce) {
  fill();
  Store store(options());
  store.get_or_compile(source_named("gemm"), compiler_);
  EXPECT_TRUE(store.discard(source_named("gemm")));
  EXPECT_FALSE(fs::exists(entry()));
  EXPECT_NE(store.get_or_compile(source_named("gemm"), compiler_), nullptr);
  EXPECT_EQ(store.counters().compiles, 1);
  EXPECT_TRUE(fs::exists(entry())) << "the new artifact is stored";
  EXPECT_FALSE(store.discard(source_named("gemm"))) << "a source is discarded only once";
}

TEST_F(CacheIdentityTest, MemoryIsBounded) {
  StoreOptions small = options();
  small.max_memory_bytes = 20'000;
  Store store(small);
  for (int i = 0; i < 100; ++i) store.get_or_compile(source_named("k" + std::to_string(i)), compiler_);
  store.get_or_compile(source_named("k99"), compiler_);
  store.get_or_compile(source_named("k0"), compiler_);
  EXPECT_EQ(store.counters(), (Counters{.memory_hits = 1, .disk_hits = 1, .compiles = 100}));
}

}  // namespace
}  // namespace tilewright::cache
