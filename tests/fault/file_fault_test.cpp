// Writing files while the disk fails or the process is killed: the result is the complete file, or none and an error.
#include "tilewright/compile/file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <array>
#include <thread>

#include "tests/fault/failing_calls.hpp"
#include "tests/fault/fault_fixture.hpp"

namespace tilewright::compile {
namespace {

namespace fs = std::filesystem;
using cache::Child;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FileFaultTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  UniqueFd open_folder() const { return UniqueFd(::open(folder_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Whether `work` throws an Error whose message has all of `parts`; if not, prints the message to stderr.
  static bool fails(const std::function<void()>& work, std::initializer_list<std::string> parts) {
    try {
      work();
      std::fprintf(stderr, "nothing was thrown\n");
      return false;
    } catch (const Error& error) {
      const std::string text = error.what();
      const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
      if (std::all_of(parts.begin(), parts.end(), has)) return true;
      std::fprintf(stderr, "%s\n", text.c_str());
      return false;
    }
  }

  ScopedFolder folder_{testing::TempDir()};
};

TEST_F(FileFaultTest, AKilledWriterLeavesNothing) {
  for (int round = 0; round < 20; ++round) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    Child writer([&] {
      const UniqueFd folder = open_folder();
      AtomicFile file(folder.get(), 0600, at("x"));
      file.write(std::string(10000, 'x'));
      write_all(pipe[1], "!", "the pipe");
      ::pause();
      return false;
    });
    char byte = 0;
    ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
    ::kill(writer.pid(), SIGKILL);
    EXPECT_FALSE(writer.succeeded());
    for (const int fd : pipe) ::close(fd);
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(FileFaultTest, AFileBeyondTheSizeLimitLeavesNothing) {
  Child writer([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{5000, 5000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    return fails([&] { write_file(at("x"), std::string(10000, 'x')); }, {"cannot write " + at("x"), "too large"});
  });
  EXPECT_TRUE(writer.succeeded());
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(FileFaultTest, AFullDiskIsReported) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_TRUE(fails([&] { write_all(full.get(), "x", "/dev/full"); }, {"cannot write /dev/full: No space left"}));
}

TEST_F(FileFaultTest, InterruptedAndPartialWritesAreContinued) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  Child writer([&] {
    ::close(pipe[0]);
    struct sigaction action {};
    action.sa_handler = [](int) {};  // without SA_RESTART, every tick interrupts a blocked write
    const itimerval tick{{0, 200}, {0, 200}};
    if (::sigaction(SIGALRM, &action, nullptr) != 0 || ::setitimer(ITIMER_REAL, &tick, nullptr) != 0) return false;
    write_all(pipe[1], std::string(std::size_t{1} << 20, 'x'), "the pipe");
    return true;
  });
  ::close(pipe[1]);
  std::size_t total = 0;
  std::array<char, 7001> bytes{};
  for (ssize_t count = 0; (count = ::read(pipe[0], bytes.data(), bytes.size())) > 0;) {
    total += static_cast<std::size_t>(count);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  ::close(pipe[0]);
  EXPECT_TRUE(writer.succeeded());
  EXPECT_EQ(total, std::size_t{1} << 20);
}

/// In each test, one system call fails as it does on some file systems.
class FailingCalls : public FileFaultTest {
 protected:
  void SetUp() override {
    if (!can_fail_system_calls()) GTEST_SKIP() << "seccomp filters are not allowed here";
  }
  bool writes_and_replaces() const {
    write_file(at("x"), "first");
    write_file(at("x"), "second");
    const UniqueFd folder = open_folder();
    AtomicFile kept(folder.get(), 0600, at("x"));
    kept.write("third");
    if (kept.publish(folder.get(), "x", Existing::keep)) return false;
    AtomicFile fresh(folder.get(), 0640, at("y"));
    fresh.write("fresh");
    return fresh.publish(folder.get(), "y", Existing::keep);
  }
  void expect_what_was_written() const {
    EXPECT_THAT(names(), ElementsAre("x", "y"));
    EXPECT_EQ(read_file(at("x"), 100), "second");
    EXPECT_EQ(read_file(at("y"), 100), "fresh");
  }
};

TEST_F(FailingCalls, WithoutTmpfileATemporaryNameIsUsed) {
  Child writer([&] {
    if (!fail_system_call(SYS_openat, EOPNOTSUPP, 2, O_TMPFILE)) return false;
    {
      const UniqueFd folder = open_folder();
      const AtomicFile unpublished(folder.get(), 0600, at("x"));
      if (names().size() != 1 || !names().front().starts_with(kTemporaryPrefix)) return false;
    }
    return names().empty() && writes_and_replaces();
  });
  EXPECT_TRUE(writer.succeeded());
  expect_what_was_written();
}

TEST_F(FailingCalls, WithoutTmpfileAndRenameNoreplaceALinkIsUsed) {
  Child writer([&] {
    return fail_system_call(SYS_openat, EOPNOTSUPP, 2, O_TMPFILE) && fail_system_call(SYS_renameat2, EINVAL) &&
           writes_and_replaces();
  });
  EXPECT_TRUE(writer.succeeded());
  expect_what_was_written();
}

TEST_F(FailingCalls, WhereLinkingIsForbiddenTheFileIsCopied) {
  Child writer([&] { return fail_system_call(SYS_linkat, EPERM) && writes_and_replaces(); });
  EXPECT_TRUE(writer.succeeded());
  expect_what_was_written();
}

TEST_F(FailingCalls, AnErrorThatOnlyCloseReportsIsReported) {
  Child writer([&] {
    return fail_system_call(SYS_close, ENOSPC) &&
           fails([&] { write_file(at("x"), "text"); }, {"cannot write " + at("x") + ": No space left"});
  });
  EXPECT_TRUE(writer.succeeded());
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(FailingCalls, ARenameThatFailsLeavesTheOldFile) {
  write_new_file(at("x"), "old");
  Child writer([&] {
    return fail_system_call(SYS_renameat, EIO) &&
           fails([&] { write_file(at("x"), "new"); }, {"cannot write " + at("x") + ": Input/output error"});
  });
  EXPECT_TRUE(writer.succeeded());
  EXPECT_THAT(names(), ElementsAre("x"));
  EXPECT_EQ(read_file(at("x"), 100), "old");
}

}  // namespace
}  // namespace tilewright::compile
