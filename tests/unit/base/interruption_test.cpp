#include "tilewright/base/interruption.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace tilewright {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(InterruptionTest, WithoutACheckWorkGoesOn) {
  EXPECT_NO_THROW(check_interruption());
  const ScopedInterruptCheck outer([] { throw Interrupted("outer"); });
  const ScopedInterruptCheck none({});
  EXPECT_NO_THROW(check_interruption());
}

TEST(InterruptionTest, TheInnermostCheckOfTheThreadCounts) {
  const ScopedInterruptCheck outer([] { throw Interrupted("outer"); });
  {
    const ScopedInterruptCheck inner([] { throw std::runtime_error("the caller's own"); });
    EXPECT_THROW(check_interruption(), std::runtime_error);
  }
  EXPECT_THROW(check_interruption(), Interrupted);
  std::jthread([] { EXPECT_NO_THROW(check_interruption()); });
}

TEST(InterruptionTest, TheCheckRunsAtMostEveryTenMilliseconds) {
  int calls = 0;
  const ScopedInterruptCheck counting([&] { ++calls; });
  const auto start = Clock::now();
  while (Clock::now() - start < 100ms) check_interruption();
  EXPECT_GE(calls, 2);
  EXPECT_LE(calls, 11);
}

TEST(InterruptionTest, ASlowCheckRunsLessOften) {
  int calls = 0;
  const ScopedInterruptCheck slow([&] {
    ++calls;
    std::this_thread::sleep_for(5ms);
  });
  const auto start = Clock::now();
  while (Clock::now() - start < 200ms) check_interruption();
  EXPECT_GE(calls, 2);
  EXPECT_LE(calls, 4);
}

TEST(InterruptionTest, TheExceptionIsThrownAgainUntilTheScopeEnds) {
  int calls = 0;
  {
    const ScopedInterruptCheck check([&] {
      ++calls;
      throw Interrupted("once");
    });
    EXPECT_FALSE(is_interrupted());
    EXPECT_THROW(check_interruption(), Interrupted);  // the work may take it for the failure of a part
    EXPECT_TRUE(is_interrupted());
    EXPECT_THROW(check_interruption(), Interrupted);
  }
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(is_interrupted());
  EXPECT_NO_THROW(check_interruption());
}

TEST(InterruptionTest, ARelayStopsHelpers) {
  InterruptRelay relay;
  std::jthread helper([&] {
    const ScopedInterruptCheck check(relay.check());
    EXPECT_THROW(
        while (true) {
          check_interruption();
          std::this_thread::sleep_for(1ms);
        },
        Interrupted);
  });
  relay.stop();
}

TEST(InterruptionTest, AnOwnerThatWaitsForHelpersIsInterrupted) {
  std::atomic<int> began = 0;
  const auto owner = std::this_thread::get_id();
  const ScopedInterruptCheck check([&] {
    if (began == 2) throw std::runtime_error("the caller's own");
  });
  EXPECT_THROW(work_together(2,
                             [&] {
                               if (std::this_thread::get_id() == owner) return;  // the owner has finished and waits
                               ++began;
                               while (true) {
                                 check_interruption();
                                 std::this_thread::sleep_for(1ms);
                               }
                             }),
               std::runtime_error);
}

TEST(InterruptionTest, ExceptionsOfHelpersReachTheCaller) {
  const auto owner = std::this_thread::get_id();
  std::atomic<int> ended = 0;
  EXPECT_THROW(work_together(3,
                             [&] {
                               ++ended;
                               if (std::this_thread::get_id() != owner) throw std::out_of_range("a helper's");
                             }),
               std::out_of_range);
  EXPECT_EQ(ended, 4);
  work_together(0, [&] { ++ended; });
  EXPECT_EQ(ended, 5);
}

/// The wait status of a child process that runs `other` on a second thread and calls exit(0) after `head_start`.
int exit_status_beside(void (*other)(), std::chrono::milliseconds head_start) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(10);
    std::thread(other).detach();
    std::this_thread::sleep_for(head_start);
    std::exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

TEST(InterruptionTest, ExitDoesNotWaitForInterruptibleWork) {
  const auto start = Clock::now();
  EXPECT_EQ(exit_status_beside(
                [] {
                  const LongWork work;
                  while (true) {
                    check_interruption();
                    std::this_thread::sleep_for(5ms);
                  }
                },
                50ms),
            0);
  EXPECT_LT(Clock::now() - start, 1500ms);
}

TEST(InterruptionTest, ExitWaitsForUninterruptibleWork) {
  const auto start = Clock::now();
  EXPECT_EQ(exit_status_beside(
                [] {
                  const LongWork work(LongWork::Kind::uninterruptible);
                  std::this_thread::sleep_for(400ms);
                },
                50ms),
            0);
  EXPECT_GE(Clock::now() - start, 350ms);
}

TEST(InterruptionTest, ExitDoesNotWaitForWorkWithHelpers) {
  const auto start = Clock::now();
  EXPECT_EQ(exit_status_beside(
                [] {
                  const LongWork work;
                  InterruptRelay relay;
                  std::jthread helper([&] {
                    const ScopedInterruptCheck check(relay.check());
                    try {
                      while (true) check_interruption();
                    } catch (const Interrupted&) {
                    }
                  });
                },
                50ms),
            0);
  EXPECT_LT(Clock::now() - start, 1500ms);
}

TEST(InterruptionTest, TheExitingThreadMayUseHelpers) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(10);
    begin_exit();
    InterruptRelay relay;
    bool is_done = false;
    std::thread([&] {
      const ScopedInterruptCheck check(relay.check());
      check_interruption();
      const LongWork work;
      is_done = true;
    }).join();
    std::exit(is_done ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(InterruptionTest, EndDoesNotSleep) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(10);
    std::atomic<bool> has_begun = false;
    std::atomic<bool> is_announced = false;
    std::thread other([&] {
      LongWork work;
      has_begun = true;
      while (!is_announced) std::this_thread::sleep_for(1ms);
      work.end();
    });
    while (!has_begun) std::this_thread::sleep_for(1ms);
    announce_exit();
    is_announced = true;
    other.join();
    std::exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(InterruptionTest, ExitOnAnotherThreadEndsTheProcess) {
  EXPECT_EQ(exit_status_beside([] { std::exit(0); }, 5s), 0);
  EXPECT_FALSE(is_left_behind_by_exit());
}

}  // namespace
}  // namespace tilewright
