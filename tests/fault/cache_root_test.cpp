// Cache folders that are unsafe or not writable: kernels are still compiled and kept in memory, with one warning.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/fault/fault_fixture.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

class CacheRootTest : public FaultTest {
 protected:
  void expect_memory_only(const StoreOptions& options, const std::string& reason) {
    Store store(options);
    EXPECT_EQ(store.root(), "");
    EXPECT_THAT(store.warnings(), ElementsAre(AllOf(HasSubstr("memory only"), HasSubstr(reason))));
    const ArtifactPtr first = store.get_or_compile(source_named("gemm"), compiler_);
    EXPECT_EQ(store.get_or_compile(source_named("gemm"), compiler_), first);
    EXPECT_EQ(store.counters(), (Counters{.memory_hits = 1, .disk_hits = 0, .compiles = 1}));
    EXPECT_EQ(store.warnings().size(), 1u);
  }
  void expect_nothing_in(const std::string& folder) const { EXPECT_TRUE(fs::is_empty(folder)) << folder; }
};

TEST_F(CacheRootTest, ItIsWritableByAnybody) {
  fs::create_directory(at("cache"));
  for (const mode_t mode : {0777, 01777, 0770, 0702}) {
    ASSERT_EQ(::chmod(at("cache").c_str(), mode), 0);
    expect_memory_only(options(), "others may write");
    expect_nothing_in(at("cache"));
  }
}

TEST_F(CacheRootTest, ItIsASymlink) {
  fs::create_directory(at("real"));
  fs::permissions(at("real"), fs::perms::owner_all);
  fs::create_directory_symlink(at("real"), at("cache"));
  expect_memory_only(options(), "cannot open it as a folder");
  expect_nothing_in(at("real"));
}

TEST_F(CacheRootTest, ItIsAFile) {
  compile::write_new_file(at("cache"), "x");
  expect_memory_only(options(), "cannot open it as a folder");
}

TEST_F(CacheRootTest, AnAncestorIsWritableByAnybody) {
  fs::create_directory(at("loose"));
  ASSERT_EQ(::chmod(at("loose").c_str(), 0777), 0);
  StoreOptions below = options();
  below.root = at("loose") + "/a/b";
  expect_memory_only(below, "may be written by anybody (mode 0777)");
  expect_nothing_in(at("loose"));
  ASSERT_EQ(::chmod(at("loose").c_str(), 01777), 0);
  EXPECT_EQ(Store(below).root(), below.root) << "sticky: nobody can replace our folder";
}

TEST_F(CacheRootTest, ItBelongsToAnotherUser) {
  fs::create_directory(at("cache"));
  fs::permissions(at("cache"), fs::perms::owner_all);
  if (::chown(at("cache").c_str(), kNobody, kNobody) != 0) GTEST_SKIP() << "only root may give folders away";
  expect_memory_only(options(), "belongs to uid 65534");
  expect_nothing_in(at("cache"));
}

TEST_F(CacheRootTest, ItCannotBeCreated) {
  StoreOptions nowhere = options();
  nowhere.root = "/proc/no/such/place";
  expect_memory_only(nowhere, "cannot create /proc/no");
}

TEST_F(CacheRootTest, NoHome) {
  StoreOptions usual;
  for (const char* home : {"", "/", "relative"}) {
    compile::Environment environment;
    environment.home = home;
    Store store(usual, environment);
    EXPECT_EQ(store.root(), "");
    EXPECT_THAT(store.warnings(), ElementsAre(HasSubstr("there is no folder for the cache")));
    EXPECT_NE(store.get_or_compile(source_named("gemm"), compiler_), nullptr);
  }
}

TEST_F(CacheRootTest, AFolderWithoutWritePermissionIsStillRead) {
  fill();
  Store(options()).get_or_compile(source_named("conv"), compiler_);
  for (const char* folder : {"cache/tmp", "cache/entries", "cache"}) {
    ASSERT_EQ(::chmod(at(folder).c_str(), 0500), 0);
  }
  Child as_nobody([&] {
    if (::geteuid() == 0) {
      const std::string give = "chown -R 65534 '" + at("cache") + "' && chmod 755 '" + folder_.path() + "'";
      if (std::system(give.c_str()) != 0 || ::setresuid(kNobody, kNobody, kNobody) != 0) return false;
    }
    StoreOptions read_only = options();
    Store store(read_only);
    const FakeCompiler unlogged("/dev/null");
    store.get_or_compile(source_named("gemm"), unlogged);
    store.get_or_compile(source_named("new"), unlogged);
    store.get_or_compile(source_named("newer"), unlogged);
    return store.counters() == Counters{.memory_hits = 0, .disk_hits = 1, .compiles = 2} &&
           store.warnings().size() == 1;
  });
  EXPECT_TRUE(as_nobody.succeeded());
}

TEST_F(CacheRootTest, AReadOnlyMountIsStillRead) {
  fill();
  if (::mount(at("cache").c_str(), at("cache").c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "mounting is not allowed here";
  }
  EXPECT_EQ(::mount(nullptr, at("cache").c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr), 0);
  {
    Store store(options());
    store.get_or_compile(source_named("gemm"), compiler_);
    store.get_or_compile(source_named("new"), compiler_);
    EXPECT_EQ(store.counters(), (Counters{.memory_hits = 0, .disk_hits = 1, .compiles = 1}));
    EXPECT_THAT(store.warnings(), testing::Contains(HasSubstr("Read-only file system")));
  }
  ::umount(at("cache").c_str());
}

TEST_F(CacheRootTest, AFullDiskCostsOneWarningAndLeavesNoPartialEntry) {
  fs::create_directory(at("small"));
  if (::mount("none", at("small").c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) {
    GTEST_SKIP() << "mounting is not allowed here";
  }
  {
    StoreOptions small = options();
    small.root = at("small");
    Store store(small);
    compiler_.payload_bytes = 100'000;
    store.get_or_compile(source_named("a"), compiler_);
    store.get_or_compile(source_named("b"), compiler_);
    EXPECT_THAT(store.warnings(), ElementsAre(HasSubstr("No space left on device")));
    EXPECT_TRUE(store.list().empty());
    expect_nothing_in(at("small") + "/tmp");
    compiler_.payload_bytes = 1000;
    store.get_or_compile(source_named("c"), compiler_);
    EXPECT_EQ(store.list().size(), 1u) << "there is room again";
  }
  ::umount(at("small").c_str());
}

TEST_F(CacheRootTest, AFileSizeLimitCostsOneWarningAndLeavesNoPartialEntry) {
  compiler_.payload_bytes = 100'000;
  Child limited([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{8192, 8192};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    Store store(options());
    store.get_or_compile(source_named("gemm"), compiler_);
    return store.warnings().size() == 1 && store.warnings()[0].find("File too large") != std::string::npos;
  });
  EXPECT_TRUE(limited.succeeded());
  EXPECT_FALSE(fs::exists(entry()));
  expect_nothing_in(at("cache") + "/tmp");
}

TEST_F(CacheRootTest, ItVanishesWhileInUse) {
  Store store(options());
  store.get_or_compile(source_named("a"), compiler_);
  fs::remove_all(at("cache"));
  EXPECT_NE(store.get_or_compile(source_named("b"), compiler_), nullptr);
  EXPECT_TRUE(store.list().empty());
  EXPECT_EQ(store.clear(), 0);
  EXPECT_FALSE(store.warnings().empty());
}

}  // namespace
}  // namespace tilewright::cache
