// Damaged or unsafe cache entries are never used: the kernel is compiled again, with one warning.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <random>

#include "tests/fault/fault_fixture.hpp"
#include "tilewright/cache/disk.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class CacheDamageTest : public FaultTest {
 protected:
  /// After the entry was damaged: a new store must notice that, compile the kernel and replace the entry.
  void expect_recompiled(const std::string& reason) {
    const std::size_t before = compiler_.runs();
    Store store(options());
    EXPECT_EQ(*store.get_or_compile(source_named("gemm"), compiler_), *original_);
    EXPECT_THAT(store.warnings(), ElementsAre(HasSubstr(reason)));
    EXPECT_EQ(store.counters(), (Counters{.memory_hits = 0, .disk_hits = 0, .compiles = 1}));
    Store next(options());
    EXPECT_EQ(*next.get_or_compile(source_named("gemm"), compiler_), *original_);
    EXPECT_EQ(next.counters().disk_hits, 1);
    EXPECT_EQ(compiler_.runs(), before + 1);
  }

  ArtifactPtr original_ = fill();
};

TEST_F(CacheDamageTest, Truncated) {
  const std::uintmax_t size = fs::file_size(entry());
  for (const std::uintmax_t left :
       {std::uintmax_t{0}, std::uintmax_t{1}, std::uintmax_t{64}, std::uintmax_t{100}, size / 2, size - 1}) {
    fs::resize_file(entry(), left);
    expect_recompiled("set aside");
    EXPECT_TRUE(fs::exists(entry().substr(0, entry().size() - 4) + ".bad"));
  }
}

TEST_F(CacheDamageTest, FlippedBitsAreNeverServed) {
  const std::string bytes = compile::read_file(entry(), 1 << 20);
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = bytes;
    const std::size_t bit = random() % (8 * damaged.size());
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    fs::remove(entry());
    compile::write_new_file(entry(), damaged);
    const auto disk = Disk::open(at("cache"), 1 << 30);
    const Lookup lookup = (*disk)->read(make_key(source_named("gemm"), compiler_.identity()));
    ASSERT_FALSE(lookup.artifact.has_value()) << "bit " << bit;
    ASSERT_FALSE(lookup.problem.empty()) << "bit " << bit;
  }
}

TEST_F(CacheDamageTest, AnIntactEntryUnderTheWrongName) {
  Store(options()).get_or_compile(source_named("conv"), compiler_);
  fs::copy_file(entry_path(at("cache"), make_key(source_named("conv"), compiler_.identity())), entry(),
                fs::copy_options::overwrite_existing);
  expect_recompiled("entry of another key");
}

TEST_F(CacheDamageTest, Symlink) {
  fs::rename(entry(), at("elsewhere"));
  fs::create_symlink(at("elsewhere"), entry());
  expect_recompiled("symbolic link");
  EXPECT_TRUE(fs::exists(at("elsewhere"))) << "the target of the link must not be touched";
}

TEST_F(CacheDamageTest, HardLink) {
  fs::create_hard_link(entry(), at("elsewhere"));
  expect_recompiled("2 links");
}

TEST_F(CacheDamageTest, FifoDoesNotBlock) {
  fs::remove(entry());
  ASSERT_EQ(::mkfifo(entry().c_str(), 0600), 0);
  expect_recompiled("not a regular file");
}

TEST_F(CacheDamageTest, Folder) {
  fs::remove(entry());
  fs::create_directory(entry());
  expect_recompiled("not a regular file");
}

TEST_F(CacheDamageTest, AnEntryOfAnotherUser) {
  if (::chown(entry().c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root may give files away";
  expect_recompiled("belongs to uid 65534");
}

TEST_F(CacheDamageTest, AHugeFileIsNotRead) {
  ASSERT_EQ(::truncate(entry().c_str(), off_t{1} << 40), 0);
  expect_recompiled("1099511627776 bytes");
}

TEST_F(CacheDamageTest, TheFanOutFolderIsASymlink) {
  const fs::path folder = fs::path(entry()).parent_path();
  fs::rename(folder, at("moved"));
  fs::create_directory_symlink(at("moved"), folder);
  Store store(options());
  EXPECT_EQ(*store.get_or_compile(source_named("gemm"), compiler_), *original_);
  EXPECT_EQ(store.counters().compiles, 1);
  EXPECT_THAT(store.warnings(), ElementsAre(HasSubstr("is not used"), HasSubstr("cannot keep a kernel")));
  EXPECT_TRUE(fs::exists(at("moved"))) << "the target of the link must not be touched";
}

TEST_F(CacheDamageTest, EntriesIsAFile) {
  fs::remove_all(at("cache"));
  fs::create_directory(at("cache"));
  compile::write_new_file(at("cache") + "/entries", "");
  fs::permissions(at("cache"), fs::perms::owner_all);
  Store store(options());
  EXPECT_EQ(*store.get_or_compile(source_named("gemm"), compiler_), *original_);
  EXPECT_EQ(store.root(), "");
  EXPECT_THAT(store.warnings(), ElementsAre(HasSubstr("memory only")));
}

TEST_F(CacheDamageTest, ForeignFilesDoNotDisturbTheListing) {
  compile::write_new_file(at("cache") + "/entries/README", "x");
  compile::write_new_file(fs::path(entry()).parent_path().string() + "/notes.twk", "x");
  Store store(options());
  EXPECT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.verify().intact, 1);
  EXPECT_TRUE(store.warnings().empty());
}

}  // namespace
}  // namespace tilewright::cache
