// Atomic file replacement, and opening files that may not be regular files.
#include "tilewright/compile/file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/compile/artifact.hpp"

namespace tilewright::compile {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Names = std::vector<std::string>;

class FileTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  UniqueFd open_folder(const std::string& path) const {
    return UniqueFd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  static Names names_in(const std::string& folder) {
    Names names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  ScopedFolder folder_{testing::TempDir()};
};

TEST_F(FileTest, HasNoNameBeforeItIsPublished) {
  const UniqueFd folder = open_folder(folder_.path());
  AtomicFile file(folder.get(), 0600, at("x"));
  file.write("whole");
  EXPECT_EQ(names_in(folder_.path()), Names()) << "a process that is killed now leaves nothing";
  EXPECT_TRUE(file.publish(folder.get(), "x", Existing::keep));
  EXPECT_EQ(names_in(folder_.path()), Names{"x"});
  EXPECT_EQ(read_file(at("x"), 100), "whole");
}

TEST_F(FileTest, UnpublishedFilesLeaveNothing) {
  const UniqueFd folder = open_folder(folder_.path());
  AtomicFile(folder.get(), 0600, at("x")).write("part");
  EXPECT_EQ(names_in(folder_.path()), Names());
}

TEST_F(FileTest, ReplacesOrKeepsWhatExists) {
  const UniqueFd folder = open_folder(folder_.path());
  write_new_file(at("x"), "old");
  {
    AtomicFile kept(folder.get(), 0600, at("x"));
    kept.write("new");
    EXPECT_FALSE(kept.publish(folder.get(), "x", Existing::keep));
  }
  EXPECT_EQ(read_file(at("x"), 100), "old");
  {
    AtomicFile replaced(folder.get(), 0600, at("x"));
    replaced.write("new");
    EXPECT_TRUE(replaced.publish(folder.get(), "x", Existing::replace));
  }
  EXPECT_EQ(read_file(at("x"), 100), "new");
  EXPECT_EQ(names_in(folder_.path()), Names{"x"});
}

TEST_F(FileTest, DoesNotReplaceAFolder) {
  const UniqueFd folder = open_folder(folder_.path());
  fs::create_directory(at("x"));
  AtomicFile file(folder.get(), 0600, at("x"));
  try {
    file.publish(folder.get(), "x", Existing::replace);
    ADD_FAILURE() << "replaced a folder";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot write " + at("x") + ": Is a directory"));
  }
}

TEST_F(FileTest, ReplacesASymbolicLinkAndNotItsTarget) {
  write_new_file(at("target"), "old");
  fs::create_symlink("target", at("x"));
  write_file(at("x"), "new");
  EXPECT_EQ(read_file(at("target"), 100), "old");
  EXPECT_FALSE(fs::is_symlink(at("x")));
}

TEST_F(FileTest, FollowsTheOpenedFolderWhenItIsMoved) {
  fs::create_directory(at("old"));
  const UniqueFd folder = open_folder(at("old"));
  AtomicFile file(folder.get(), 0600, "x");
  fs::rename(at("old"), at("new"));
  fs::create_directory(at("old"));
  EXPECT_TRUE(file.publish(folder.get(), "x", Existing::replace));
  EXPECT_EQ(names_in(at("new")), Names{"x"});
  EXPECT_EQ(names_in(at("old")), Names());
}

TEST_F(FileTest, IsPublishedInAnotherFolder) {
  fs::create_directory(at("tmp"));
  fs::create_directory(at("entries"));
  const UniqueFd temporary = open_folder(at("tmp"));
  const UniqueFd entries = open_folder(at("entries"));
  for (const char* text : {"first", "second"}) {
    AtomicFile file(temporary.get(), 0600, at("entries/x"));
    file.write(text);
    EXPECT_TRUE(file.publish(entries.get(), "x", Existing::replace));
  }
  EXPECT_EQ(read_file(at("entries/x"), 100), "second");
  EXPECT_EQ(names_in(at("tmp")), Names());
}

TEST_F(FileTest, ModeIsReducedByTheUmask) {
  const mode_t before = ::umask(027);
  write_file(at("x"), "");
  const UniqueFd folder = open_folder(folder_.path());
  AtomicFile(folder.get(), 0600, at("y")).publish(folder.get(), "y", Existing::keep);
  ::umask(before);
  EXPECT_EQ(mode_of(at("x")), 0640U);
  EXPECT_EQ(mode_of(at("y")), 0600U);
}

TEST_F(FileTest, ExactlyOneOfManyWritersPublishes) {
  const UniqueFd folder = open_folder(folder_.path());
  std::atomic<int> published = 0;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 8; ++writer) {
    writers.emplace_back([&, writer] {
      AtomicFile file(folder.get(), 0600, at("x"));
      file.write(std::to_string(writer));
      if (file.publish(folder.get(), "x", Existing::keep)) ++published;
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(published, 1);
  EXPECT_EQ(names_in(folder_.path()), Names{"x"});
}

TEST_F(FileTest, AMissingFolderIsNamed) {
  try {
    write_file(at("missing/x"), "");
    ADD_FAILURE() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "cannot create " + at("missing/x") + ": No such file or directory");
  }
}

TEST_F(FileTest, OtherFileTypesAreRefusedWithoutBlocking) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  for (const auto& [path, reason] : {std::pair{at("fifo"), "it is a FIFO, not a regular file"},
                                     {folder_.path(), "it is a folder, not a regular file"},
                                     {std::string("/dev/zero"), "it is a device, not a regular file"},
                                     {at("missing"), "No such file or directory"}}) {
    const Result<UniqueFd> opened = open_regular_file(path);
    ASSERT_FALSE(opened) << path;
    EXPECT_EQ(opened.reason(), reason);
    EXPECT_THROW(read_file(path, 100), Error);
    EXPECT_THROW(static_cast<void>(read_artifact(path)), Error);
  }
}

TEST_F(FileTest, ReadsFromAnOffsetToTheEnd) {
  write_file(at("x"), "0123456789");
  const Result<UniqueFd> file = open_regular_file(at("x"));
  std::array<std::byte, 6> bytes{};
  EXPECT_EQ(read_at(file->get(), bytes, 2, "x"), 6U);
  EXPECT_EQ(std::to_integer<char>(bytes[0]), '2');
  EXPECT_EQ(read_at(file->get(), bytes, 7, "x"), 3U);
  EXPECT_EQ(read_at(file->get(), bytes, 10, "x"), 0U);
}

TEST_F(FileTest, AReadCanBeInterrupted) {
  write_file(at("x"), std::string(100, 'x'));
  const ScopedInterruptCheck interrupted([] { throw Interrupted("enough"); });
  EXPECT_THROW(read_file(at("x"), 100), Interrupted);
}

}  // namespace
}  // namespace tilewright::compile
