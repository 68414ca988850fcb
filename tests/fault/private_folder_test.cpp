// Private temporary folders: the next process deletes those of killed processes, and nothing else.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "tests/fault/fault_fixture.hpp"
#include "tilewright/compile/failed_source.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/nvcc.hpp"

namespace tilewright::compile {
namespace {

namespace fs = std::filesystem;
using cache::Child;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

constexpr uid_t kNobody = 65534;

class PrivateFolderTest : public testing::Test {
 protected:
  PrivateFolderTest() {
    make_folders(at("tmp"));
    make_folders(at("outside"));
    write_new_file(at("outside/precious"), "text");
  }
  ~PrivateFolderTest() override { EXPECT_EQ(read_file(at("outside/precious"), 100), "text"); }
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  static std::vector<std::string> names_at(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::vector<std::string> left() const { return names_at(at("tmp")); }
  /// A process that has run `begin` and waits to be killed.
  Child waiting(const std::function<void()>& begin) const {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const UniqueFd reader(pipe[0]);
    const UniqueFd writer(pipe[1]);
    Child child([&] {
      begin();
      write_all(writer.get(), "!", "the pipe");
      while (true) ::pause();
      return false;
    });
    char byte = 0;
    EXPECT_EQ(::read(reader.get(), &byte, 1), 1);
    return child;
  }
  static void kill(Child& child) {
    ::kill(child.pid(), SIGKILL);
    EXPECT_FALSE(child.succeeded());
  }

  ScopedFolder folder_{testing::TempDir()};
};

TEST_F(PrivateFolderTest, TheFolderOfAKilledProcessIsDeletedByTheNext) {
  std::unique_ptr<ScopedFolder> scratch;
  Child child = waiting([&] {
    scratch = std::make_unique<ScopedFolder>(at("tmp"));
    make_folders(scratch->path() + "/a/b/c");
    write_new_file(scratch->path() + "/a/b/kernel.cu", "text");
    fs::create_directory_symlink(at("outside"), scratch->path() + "/a/link");
    fs::create_symlink(at("outside/precious"), scratch->path() + "/link");
  });
  EXPECT_THAT(left(), ElementsAre(StartsWith("tilewright-scratch-")));
  {
    const ScopedFolder beside(at("tmp"));
    EXPECT_THAT(left(), SizeIs(2)) << "the folder of the other process is in use";
  }
  kill(child);
  { const ScopedFolder next(at("tmp")); }
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(PrivateFolderTest, AForkedChildNeitherDeletesNorLocksItsParentsFolder) {
  pid_t grandchild = 0;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  Child child = waiting([&] {
    auto* scratch = new ScopedFolder(at("tmp"));
    if (::fork() != 0) return;
    delete scratch;
    const pid_t pid = ::getpid();
    write_all(pipe[1], {reinterpret_cast<const char*>(&pid), sizeof pid}, "the pipe");
    while (true) ::pause();
  });
  ASSERT_EQ(::read(pipe[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  for (const int fd : pipe) ::close(fd);
  EXPECT_THAT(left(), SizeIs(1)) << "its parent still uses the folder";
  kill(child);
  { const ScopedFolder next(at("tmp")); }
  EXPECT_THAT(left(), IsEmpty()) << "the remaining child does not use the folder";
  ::kill(grandchild, SIGKILL);
}

TEST_F(PrivateFolderTest, ForeignFoldersAreKept) {
  const std::string name = at("tmp/tilewright-scratch-");
  make_folders(name + "readable");
  fs::permissions(name + "readable", fs::perms(0755));
  fs::create_directory_symlink(at("outside"), name + "link");
  write_new_file(name + "file", "text");
  ASSERT_EQ(::mkfifo((name + "fifo").c_str(), 0600), 0);
  make_folders(at("tmp/tilewright-mine"));
  make_folders(at("tmp/other"));
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    make_folders(name + "nobodys");
    ASSERT_EQ(::chown((name + "nobodys").c_str(), kNobody, kNobody), 0);
  }
  const std::vector<std::string> before = left();
  { const ScopedFolder scratch(at("tmp")); }
  EXPECT_EQ(left(), before);
}

TEST_F(PrivateFolderTest, ASymbolicLinkThatReplacedTheFolderIsNotFollowed) {
  {
    const ScopedFolder scratch(at("tmp"));
    write_new_file(scratch.path() + "/x", "");
    fs::rename(scratch.path(), at("tmp/moved"));
    fs::create_directory_symlink(at("outside"), scratch.path());
  }
  EXPECT_THAT(left(), UnorderedElementsAre("moved", StartsWith("tilewright-scratch-")));
  EXPECT_THAT(names_at(at("tmp/moved")), IsEmpty());
}

TEST_F(PrivateFolderTest, ManyProcessesCreateFoldersAtOnce) {
  std::vector<Child> children;
  for (int process = 0; process < 6; ++process) {
    children.emplace_back([&] {
      for (int round = 0; round < 60; ++round) {
        const ScopedFolder scratch(at("tmp"));
        write_new_file(scratch.path() + "/x", "mine");
        if (read_file(scratch.path() + "/x", 10) != "mine") return false;
      }
      return true;
    });
  }
  for (Child& child : children) EXPECT_TRUE(child.succeeded());
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(PrivateFolderTest, AMissingParentIsNamed) {
  try {
    const ScopedFolder scratch(at("missing"));
    ADD_FAILURE() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "cannot create a folder in " + at("missing") + ": No such file or directory");
  }
}

class FailedSourceTest : public PrivateFolderTest {
 protected:
  static Source numbered(int number) {
    Source source = cache::source_named("gemm");
    source.text = std::to_string(number);
    return source;
  }
  std::string users_folder() const { return fmt::format("tilewright-failed-{}", ::geteuid()); }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }
};

TEST_F(FailedSourceTest, TheNewestSourcesAreKeptInOneFolderPerUser) {
  constexpr int kDumps = 40;
  constexpr int kKept = 32;
  std::string last;
  for (int i = 0; i < kDumps; ++i) {
    last = dump_source(numbered(i), "", at("tmp"));
    EXPECT_EQ(read_file(last, 100), std::to_string(i));
    timespec old_age[2] = {{1000 + i, 0}, {1000 + i, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, last.c_str(), old_age, 0), 0);
  }
  EXPECT_THAT(left(), ElementsAre(users_folder()));
  EXPECT_EQ(mode_of(at("tmp/" + users_folder())), 0700U);
  EXPECT_EQ(mode_of(last), 0600U);
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(at("tmp/" + users_folder()))) {
    EXPECT_THAT(entry.path().filename(), MatchesRegex("gemm-[0-9a-f]+\\.cu"));
    kept.push_back(read_file(entry.path(), 100));
  }
  EXPECT_THAT(kept, SizeIs(kKept));
  for (int i = kDumps - kKept; i < kDumps; ++i) EXPECT_THAT(kept, testing::Contains(std::to_string(i)));
}

TEST_F(FailedSourceTest, APlantedFolderOrLinkIsNotUsed) {
  const std::string planted = at("tmp/" + users_folder());
  std::map<std::string, std::function<void()>> plants{
      {"a link", [&] { fs::create_directory_symlink(at("outside"), planted); }},
      {"a readable folder", [&] { make_folders(planted), fs::permissions(planted, fs::perms(0777)); }},
      {"a file", [&] { write_new_file(planted, ""); }},
      {"a FIFO", [&] { ASSERT_EQ(::mkfifo(planted.c_str(), 0600), 0); }},
  };
  if (::geteuid() == 0) {
    plants["another's folder"] = [&] {
      make_folders(planted);
      ASSERT_EQ(::chown(planted.c_str(), kNobody, kNobody), 0);
    };
  }
  for (const auto& [what, plant] : plants) {
    plant();
    const std::string path = dump_source(numbered(7), "", at("tmp"));
    EXPECT_THAT(path, Not(StartsWith(planted + "/"))) << what;
    EXPECT_THAT(path, StartsWith(planted + "-")) << what;
    EXPECT_EQ(read_file(path, 100), "7") << what;
    EXPECT_EQ(mode_of(fs::path(path).parent_path()), 0700U) << what;
    if (fs::is_directory(planted) && !fs::is_symlink(planted)) {
      EXPECT_TRUE(fs::is_empty(planted)) << what;
    }
    EXPECT_THAT(names_at(at("outside")), ElementsAre("precious")) << what;
    fs::remove_all(at("tmp"));
    make_folders(at("tmp"));
  }
}

TEST_F(FailedSourceTest, NothingIsDeletedFromTheCallersFolder) {
  make_folders(at("dumps"));
  write_new_file(at("dumps/notes.cu"), "mine");
  for (int i = 0; i < 40; ++i) EXPECT_THAT(dump_source(numbered(i), at("dumps"), at("tmp")), StartsWith(at("dumps/")));
  EXPECT_THAT(names_at(at("dumps")), SizeIs(41));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(FailedSourceTest, ReportsWhyTheSourceCouldNotBeWritten) {
  EXPECT_THAT(dump_source(numbered(0), "", at("missing")), StartsWith("(not dumped: cannot create a folder in "));
  EXPECT_THAT(dump_source(numbered(0), at("outside/precious/x"), ""), HasSubstr("not dumped"));
}

TEST_F(PrivateFolderTest, NvccWritesItsTemporaryFilesToOne) {
  make_folders(at("bin"));
  write_new_file(at("bin/nvcc"),
                 "#!/bin/sh\n"
                 "if [ \"$1\" = --version ]; then\n"
                 "  echo 'Cuda compilation tools, release 13.0, V13.0.88'; echo 'Build cuda_13.0'; exit 0\n"
                 "fi\n"
                 "echo text > $TMPDIR/tmpxft_00000001 && echo \"TMPDIR is $TMPDIR\"; ls -ld $TMPDIR; exit 1\n");
  fs::permissions(at("bin/nvcc"), fs::perms::owner_all);
  Environment environment;
  environment.temporary_dir = at("tmp");
  environment.path = {at("bin"), "/usr/bin", "/bin"};
  ToolchainOptions options;
  options.backend = Backend::nvcc;
  options.dump_dir = at("dumps");
  const auto compiler = make_compiler(options, environment);
  try {
    compiler->compile(cache::source_named("gemm"));
    ADD_FAILURE() << "it compiled";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("TMPDIR is " + at("tmp/tilewright-scratch-")));
    EXPECT_THAT(error.what(), HasSubstr("drwx------"));
  }
  EXPECT_THAT(left(), IsEmpty());
}

}  // namespace
}  // namespace tilewright::compile
