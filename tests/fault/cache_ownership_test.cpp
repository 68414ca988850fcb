// The cache deletes only files that it created: nothing in foreign folders, nothing through symbolic links, and no
// foreign file that lies among the entries.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <chrono>

#include "tests/fault/fault_fixture.hpp"
#include "tilewright/cache/disk.hpp"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CacheOwnershipTest : public FaultTest {
 protected:
  void write_old(const std::string& path) const {
    compile::make_folders(fs::path(path).parent_path());
    compile::write_new_file(path, "a user's own");
    fs::last_write_time(path, fs::file_time_type::clock::now() - 100h);
  }
  /// Runs everything that may delete files: publishing with a limit of one byte, verify() and clear().
  void use_everything() const {
    StoreOptions tiny = options();
    tiny.max_bytes = 1;
    for (int i = 0; i < 3; ++i) Store(tiny).get_or_compile(source_named("k" + std::to_string(i)), compiler_);
    Store store(tiny);
    store.verify();
    store.list();
    store.clear();
  }
};

TEST_F(CacheOwnershipTest, AFolderWithForeignFilesIsRefusedAndNotChanged) {
  const std::vector<std::string> files = {"cache/tmp/notes", "cache/entries/ab/thesis.twk", "cache/photo.png"};
  for (const std::string& file : files) write_old(at(file));
  fs::permissions(at("cache"), fs::perms::owner_all);
  use_everything();
  for (const std::string& file : files) EXPECT_TRUE(fs::exists(at(file))) << file;
  EXPECT_FALSE(fs::exists(at("cache/tilewright-cache")));
  EXPECT_THAT(Store(options()).warnings(),
              ElementsAre(AllOf(HasSubstr("memory only"), HasSubstr("it is not empty and not a cache"))));
}

TEST_F(CacheOwnershipTest, AHomeWithATmpFolderIsRefused) {
  write_old(at("cache/tmp/notes"));
  fs::permissions(at("cache"), fs::perms::owner_all);
  use_everything();
  EXPECT_TRUE(fs::exists(at("cache/tmp/notes")));
  EXPECT_FALSE(fs::exists(at("cache/entries")));
}

TEST_F(CacheOwnershipTest, AnEmptyFolderBecomesACache) {
  fs::create_directory(at("cache"));
  fs::permissions(at("cache"), fs::perms::owner_all);
  fill();
  EXPECT_TRUE(fs::exists(at("cache/tilewright-cache")));
  const std::string tag = compile::read_file(at("cache/CACHEDIR.TAG"), 1 << 10);
  EXPECT_TRUE(tag.starts_with("Signature: 8a477f597d28d172789f06886806bc55")) << tag;
}

TEST_F(CacheOwnershipTest, ACacheOfAnEarlierVersionIsTakenOver) {
  fs::create_directory(at("cache"));
  fs::permissions(at("cache"), fs::perms::owner_all);
  const std::string old_entry = at("cache") + "/entries/ab/" + std::string(62, '0') + ".twk";
  write_old(old_entry);
  fs::create_directory(at("cache/tmp"));
  compile::write_new_file(at("cache/locks"), "");
  fill();
  EXPECT_TRUE(fs::exists(entry()));
  Store(options()).clear();
  EXPECT_FALSE(fs::exists(old_entry)) << "it was created by a cache";
}

TEST_F(CacheOwnershipTest, SymbolicLinksAreNotFollowed) {
  fill();
  write_old(at("elsewhere/" + std::string(62, '0') + "-" + std::string(16, '0') + ".twk"));
  write_old(at("elsewhere/.tilewright-left"));
  fs::create_directory_symlink(at("elsewhere"), at("cache/entries/00"));
  fs::remove(at("cache/tmp"));
  fs::create_directory_symlink(at("elsewhere"), at("cache/tmp"));
  use_everything();
  EXPECT_EQ(std::distance(fs::directory_iterator(at("elsewhere")), {}), 2);
}

TEST_F(CacheOwnershipTest, OnlyFilesNamedLikeCacheFilesAreDeleted) {
  fill();
  const std::string folder = fs::path(entry()).parent_path();
  const std::vector<std::string> foreign = {folder + "/notes.twk", folder + "/" + std::string(62, 'g') + ".twk",
                                            at("cache/entries/README"), at("cache/tmp/README"),
                                            at("cache/entries/zz/" + std::string(62, '0') + ".twk")};
  for (const std::string& file : foreign) write_old(file);
  // A folder with the name of an entry was not created by a cache either.
  const std::string nested = folder + "/" + std::string(62, '1') + "-" + std::string(16, '1') + ".twk/thesis";
  write_old(nested);
  try {
    use_everything();
  } catch (const Error& error) {  // clear() reports that it could not delete the folder
    EXPECT_THAT(error.what(), HasSubstr("could not be deleted"));
  }
  for (const std::string& file : foreign) EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_TRUE(fs::exists(nested));
  EXPECT_FALSE(fs::exists(entry()));
}

TEST_F(CacheOwnershipTest, AnAncestorWritableByAGroupIsNotTrusted) {
  fs::create_directory(at("group"));
  ASSERT_EQ(::chmod(at("group").c_str(), 0775), 0);
  if (::chown(at("group").c_str(), ::geteuid(), 65534) != 0) GTEST_SKIP() << "only root may give folders away";
  StoreOptions below = options();
  below.root = at("group") + "/cache";
  EXPECT_THAT(Store(below).warnings(), ElementsAre(HasSubstr("may be written by the group 65534")));
  ASSERT_EQ(::chown(at("group").c_str(), 65534, 0), 0);
  ASSERT_EQ(::chmod(at("group").c_str(), 0755), 0);
  EXPECT_THAT(Store(below).warnings(), ElementsAre(HasSubstr("belongs to uid 65534, who may replace it")));
}

TEST_F(CacheOwnershipTest, AnEntryDatedInTheFutureIsEvicted) {
  compiler_.payload_bytes = 5000;
  StoreOptions small = options();
  small.max_bytes = 25'000;
  Store(small).get_or_compile(source_named("future"), compiler_);
  const std::string future = entry_path(at("cache"), make_key(source_named("future"), compiler_.identity()));
  fs::last_write_time(future, fs::file_time_type::clock::now() + 10000h);
  for (int i = 0; i < 12; ++i) {
    Store(small).get_or_compile(source_named("k" + std::to_string(i)), compiler_);
    for (const auto& file : fs::recursive_directory_iterator(at("cache/entries"))) {
      const bool is_past = file.is_regular_file() && file.last_write_time() <= fs::file_time_type::clock::now();
      if (is_past) fs::last_write_time(file, file.last_write_time() - 1h);
    }
  }
  EXPECT_FALSE(fs::exists(future)) << "it was not used since";
}

TEST_F(CacheOwnershipTest, FreshEntriesSurviveAClockThatJumps) {
  fill();
  fs::last_write_time(entry(), fs::file_time_type::clock::now() - 100000h);  // as if the clock jumped forwards
  Store(options()).get_or_compile(source_named("other"), compiler_);
  EXPECT_TRUE(fs::exists(entry()));
  fs::last_write_time(entry(), fs::file_time_type::clock::now() + 100000h);  // as if the clock jumped back
  Store store(options());
  store.get_or_compile(source_named("gemm"), compiler_);
  EXPECT_EQ(store.counters().disk_hits, 1);
  EXPECT_LE(fs::last_write_time(entry()), fs::file_time_type::clock::now()) << "a use sets the time to now";
}

TEST_F(CacheOwnershipTest, ClearReportsFilesItCouldNotDelete) {
  fill();
  if (::mount(at("cache").c_str(), at("cache").c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(::mount(nullptr, at("cache").c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr), 0);
  try {
    Store(options()).clear();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("1 of the cache's files"), HasSubstr("Read-only file system")));
  }
  ::umount(at("cache").c_str());
  EXPECT_TRUE(fs::exists(entry()));
}

}  // namespace
}  // namespace tilewright::cache
