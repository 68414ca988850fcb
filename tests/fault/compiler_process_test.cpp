// The compiler process crashes, hangs, exhausts memory or is killed; its caller forks, exits or is interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "tests/fault/fake_nvrtc.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"

namespace tilewright::compile {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;

/// The running child processes of this process.
std::set<pid_t> children() {
  std::set<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t after_name = text.rfind(')');  // "pid (name) state parent ..."
    if (after_name == std::string::npos) continue;
    std::istringstream rest(text.substr(after_name + 2));
    char state = 0;
    pid_t parent = 0;
    rest >> state >> parent;
    if (parent == ::getpid() && state != 'Z') found.insert(std::stoi(name));
  }
  return found;
}

class CompilerProcessTest : public testing::Test {
 protected:
  std::string failure_of(const std::vector<std::string>& commands, ToolchainOptions options = {}) {
    try {
      make_fake_nvrtc(folder_.path(), options)->compile(commanded_source("gemm", commands));
    } catch (const CompileError& error) {
      return error.what();
    }
    return "it compiled";
  }
  void expect_it_still_compiles() {
    EXPECT_EQ(make_fake_nvrtc(folder_.path())->compile(commanded_source("after")).ptx, "text of after");
  }

  ScopedFolder folder_{testing::TempDir()};
};

TEST_F(CompilerProcessTest, OneProcessServesManyCompiles) {
  const auto compiler = make_fake_nvrtc(folder_.path());
  compiler->compile(commanded_source("first"));
  const std::set<pid_t> after_first = children();
  for (int i = 0; i < 20; ++i) compiler->compile(commanded_source("k" + std::to_string(i)));
  EXPECT_EQ(children(), after_first);
  EXPECT_FALSE(after_first.empty());
}

TEST_F(CompilerProcessTest, ACrashIsAnErrorAndTheNextCompileWorks) {
  EXPECT_THAT(failure_of({"kill 11"}), AllOf(HasSubstr("signal 11"), HasSubstr("cannot compile 'gemm'")));
  EXPECT_THAT(failure_of({"exit 0"}), HasSubstr("ended without a result"));
  expect_it_still_compiles();
}

TEST_F(CompilerProcessTest, AKilledCompileIsRetriedOnce) {
  const std::string log = folder_.path() + "/compiles";
  EXPECT_THAT(failure_of({"log " + log, "kill 9"}), HasSubstr("signal 9"));
  EXPECT_EQ(fs::file_size(log), 2u);
  expect_it_still_compiles();
}

TEST_F(CompilerProcessTest, AHangEndsAtTheTimeLimit) {
  const auto start = Clock::now();
  ToolchainOptions options;
  options.timeout_s = 0.3;
  EXPECT_THAT(failure_of({"sleep 60000"}, options),
              AllOf(HasSubstr("after 0.3 s"), HasSubstr("TILEWRIGHT_COMPILE_TIMEOUT")));
  EXPECT_LT(Clock::now() - start, 3s);
  expect_it_still_compiles();
}

TEST_F(CompilerProcessTest, MemoryIsLimited) {
  ToolchainOptions options;
  options.memory_bytes = std::int64_t{64} << 20;
  EXPECT_THAT(failure_of({"eat 128"}, options), AllOf(HasSubstr("signal"), HasSubstr("64 MiB")));
  EXPECT_EQ(failure_of({"eat 128"}), "it compiled") << "within the usual limit";
}

TEST_F(CompilerProcessTest, AnInterruptionEndsTheCompileAndItsProcess) {
  const auto compiler = make_fake_nvrtc(folder_.path());
  const std::set<pid_t> before = children();
  const auto start = Clock::now();
  const ScopedInterruptCheck check([&] {
    if (Clock::now() - start > 100ms) throw Interrupted("as asked");
  });
  EXPECT_THROW(compiler->compile(commanded_source("gemm", {"sleep 60000"})), Interrupted);
  EXPECT_LT(Clock::now() - start, 300ms);
  for (const pid_t child : children()) EXPECT_TRUE(before.contains(child));
}

TEST_F(CompilerProcessTest, AnIdleProcessThatDiedIsReplaced) {
  expect_it_still_compiles();
  for (const pid_t child : children()) ::kill(child, SIGKILL);
  expect_it_still_compiles();
}

TEST_F(CompilerProcessTest, ProcessesEndWithTheirCaller) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t caller = ::fork();
  if (caller == 0) {
    ::close(ends[0]);
    std::jthread busy([&] {  // the caller is killed during this compile
      try {
        make_fake_nvrtc(folder_.path())->compile(commanded_source("gemm", {"sleep 60000"}));
      } catch (const std::exception&) {
      }
    });
    std::this_thread::sleep_for(200ms);
    const std::set<pid_t> running = children();
    const pid_t child = running.empty() ? 0 : *running.begin();
    if (::write(ends[1], &child, sizeof child) != sizeof child) ::_exit(1);
    std::this_thread::sleep_for(60s);
    ::_exit(1);
  }
  ::close(ends[1]);
  pid_t compiler = 0;
  ASSERT_EQ(::read(ends[0], &compiler, sizeof compiler), static_cast<ssize_t>(sizeof compiler));
  ASSERT_GT(compiler, 0);
  EXPECT_EQ(::kill(compiler, 0), 0);
  ::kill(caller, SIGKILL);
  ::waitpid(caller, nullptr, 0);
  const auto deadline = Clock::now() + 2s;
  // Its new parent may never wait for it; a zombie has no memory map.
  const auto is_gone = [&] {
    std::ifstream maps("/proc/" + std::to_string(compiler) + "/maps");
    return !maps || maps.peek() == std::ifstream::traits_type::eof();
  };
  while (!is_gone() && Clock::now() < deadline) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(is_gone());
  ::close(ends[0]);
}

TEST_F(CompilerProcessTest, AForkedChildCompilesWhileTheParentDoes) {
  const auto compiler = make_fake_nvrtc(folder_.path());
  std::atomic<bool> is_right = false;
  std::jthread busy([&] {
    is_right = compiler->compile(commanded_source("parents", {"sleep 700"})).ptx.ends_with("text of parents");
  });
  std::this_thread::sleep_for(150ms);
  const auto start = Clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    ::_exit(compiler->compile(commanded_source("childs")).ptx == "text of childs" ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_LT(Clock::now() - start, 500ms) << "the child waited for the parent's compile";
  busy.join();
  EXPECT_TRUE(is_right);
}

TEST_F(CompilerProcessTest, ExitDoesNotWaitForACompile) {
  const auto start = Clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    const std::string folder = folder_.path();
    std::thread([folder] { make_fake_nvrtc(folder)->compile(commanded_source("gemm", {"sleep 60000"})); }).detach();
    std::this_thread::sleep_for(150ms);
    std::exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_LT(Clock::now() - start, 2s);
}

TEST_F(CompilerProcessTest, TheCallersOpenFilesAreNotInherited) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);  // without O_CLOEXEC
  for (const pid_t child : children()) ::kill(child, SIGKILL);
  expect_it_still_compiles();
  ::close(ends[1]);
  char byte = 0;
  ASSERT_EQ(::fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "another process still has the write end open";
  ::close(ends[0]);
}

TEST_F(CompilerProcessTest, CompilesInThisProcessWhenRequested) {
  ToolchainOptions options;
  options.backend = Backend::nvrtc_in_process;
  const std::set<pid_t> before = children();
  EXPECT_EQ(make_fake_nvrtc(folder_.path(), options)->compile(commanded_source("gemm")).ptx, "text of gemm");
  EXPECT_THROW(make_fake_nvrtc(folder_.path(), options)->compile(commanded_source("gemm", {"fail"})), CompileError);
  EXPECT_EQ(children(), before);
}

}  // namespace
}  // namespace tilewright::compile
