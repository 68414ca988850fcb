// for_each_index() calls the work once for each index, whatever fails.
#include "tilewright/compile/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/base/interruption_latency.hpp"

namespace tilewright::compile {
namespace {

TEST(ForEachIndex, VisitsEachIndexOnce) {
  for (const int threads : {-1, 0, 1, 2, 7, 100}) {
    std::vector<std::atomic<int>> visits(50);
    for_each_index(visits.size(), threads, [&](std::size_t i) { ++visits[i]; });
    for (const std::atomic<int>& count : visits) EXPECT_EQ(count, 1);
  }
}

TEST(ForEachIndex, ZeroIndicesCallNothing) {
  for_each_index(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ForEachIndex, OneThreadIsTheCallingThread) {
  const auto caller = std::this_thread::get_id();
  for_each_index(3, 1, [&](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ForEachIndex, ThrowsTheFailureOfTheLowestIndexAfterAllRan) {
  std::atomic<int> ran{0};
  try {
    for_each_index(20, 4, [&](std::size_t i) {
      ++ran;
      if (i % 5 == 3) throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "nothing thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "3");
  }
  EXPECT_EQ(ran, 20);
}

TEST(ForEachIndex, AnInterruptionEndsAllAndStartsNothingMore) {
  std::atomic<int> begun{0};
  EXPECT_LT(interruption_latency([&] {
              for_each_index(1000, 3, [&](std::size_t) {
                ++begun;
                while (true) {
                  check_interruption();
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
              });
            }),
            kMaxInterruptionLatency);
  EXPECT_EQ(begun, 3);
}

/// When one index fails and the program is interrupted, the interruption is thrown.
TEST(ForEachIndex, AnInterruptionTakesPrecedenceOverAnError) {
  interruption_latency([&] {
    for_each_index(10, 2, [&](std::size_t i) {
      if (i == 0) throw std::runtime_error("an error");
      while (true) check_interruption();
    });
  });
}

}  // namespace
}  // namespace tilewright::compile
