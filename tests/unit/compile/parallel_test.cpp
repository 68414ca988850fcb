// Work spread over threads: all of it, once, whatever fails.
#include "tilewright/compile/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tilewright::compile {
namespace {

TEST(ForEachIndex, VisitsEachIndexOnce) {
  for (const int threads : {-1, 0, 1, 2, 7, 100}) {
    std::vector<std::atomic<int>> visits(50);
    for_each_index(visits.size(), threads, [&](std::size_t i) { ++visits[i]; });
    for (const std::atomic<int>& count : visits) EXPECT_EQ(count, 1);
  }
}

TEST(ForEachIndex, NothingToDoStartsNothing) {
  for_each_index(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ForEachIndex, OneThreadIsTheCallers) {
  const auto caller = std::this_thread::get_id();
  for_each_index(3, 1, [&](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ForEachIndex, TheLowestFailureIsThrownAfterAllRan) {
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

}  // namespace
}  // namespace tilewright::compile
