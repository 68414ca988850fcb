#include "tilewright/base/fork.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

namespace tilewright {
namespace {

/// Whether `work` returned true in a forked child, within five seconds.
bool holds_in_child(const std::function<bool()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(5);
    ::_exit(work() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ForkTest, AMutexOfAnotherThreadIsUnlockedInTheChild) {
  ForkSafeMutex mutex;
  std::atomic<bool> done = false;
  std::jthread busy([&] {
    while (!done) {
      const std::scoped_lock lock(mutex);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(holds_in_child([&] {
      const std::scoped_lock lock(mutex);
      return true;
    }));
  }
  done = true;
}

TEST(ForkTest, TheDescriptorIsClosedInTheChild) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  UninheritedFd writer(ends[1]);
  const int number = writer.get();
  EXPECT_TRUE(holds_in_child([&] {
    if (writer || ::fcntl(number, F_GETFD) != -1) return false;
    const int reused = ::open("/dev/null", O_RDONLY);  // gets the number of the closed descriptor
    writer.reset();                                    // must not close the reused number
    return reused == number ? ::fcntl(reused, F_GETFD) != -1 : reused >= 0;
  }));
  ASSERT_TRUE(writer);
  const UninheritedFd moved = std::move(writer);
  EXPECT_EQ(moved.get(), number);
  EXPECT_NE(::fcntl(number, F_GETFD), -1);
  ::close(ends[0]);
}

TEST(ForkTest, CountsGenerations) {
  const std::uint64_t here = fork_generation();
  EXPECT_TRUE(holds_in_child([&] {
    if (fork_generation() != here + 1) return false;
    return holds_in_child([&] { return fork_generation() == here + 2; });
  }));
  EXPECT_EQ(fork_generation(), here);
}

}  // namespace
}  // namespace tilewright
