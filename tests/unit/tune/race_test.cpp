// tune::Race with fixed times: the winner, the dropped contenders and the time spent.
#include "tilewright/tune/race.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "tests/unit/base/interruption_latency.hpp"

namespace tilewright::tune {
namespace {

/// Contenders with fixed times; counts their runs.
class Track {
 public:
  explicit Track(std::vector<double> times_us) : times_us_(std::move(times_us)) {}

  Race::TimeCalls calls() {
    return [this](std::span<const std::size_t> order) {
      std::vector<double> times;
      for (const std::size_t contender : order) {
        times.push_back(times_us_[contender]);
        ++count[contender];
        total_us += times.back();
      }
      orders.emplace_back(order.begin(), order.end());
      return times;
    };
  }

  std::map<std::size_t, int> count;
  double total_us = 0.0;
  std::vector<std::vector<std::size_t>> orders;

 private:
  std::vector<double> times_us_;
};

TEST(Race, IsInterruptedBetweenBatches) {
  Track track({30.0, 20.0});
  Race race(2, 1.0);
  const Race::TimeCalls calls = track.calls();
  interruption_latency([&] { race.run(calls); }, std::chrono::milliseconds(0));
  EXPECT_TRUE(track.orders.empty());
}

TEST(Race, TheFastestWins) {
  Track track({30.0, 20.0, 10.0, 40.0});
  Race race(4, 1.0);
  EXPECT_EQ(race.run(track.calls()), 2U);
  EXPECT_EQ(race.median_us(2), 10.0);
}

TEST(Race, TiesWithinOnePercentKeepTheOrder) {
  Track tied({10.09, 10.0, 10.05});
  EXPECT_EQ(Race(3, 1.0).run(tied.calls()), 0U);
  Track apart({10.2, 10.0, 10.05});
  EXPECT_EQ(Race(3, 1.0).run(apart.calls()), 1U);
}

TEST(Race, SlowContendersAreDroppedEarly) {
  Track track({100.0, 10.0, 10.3, 50.0, 10.2, 10.1, 80.0, 90.0});
  Race race(8, 1.0);
  EXPECT_EQ(race.run(track.calls()), 1U);
  for (const std::size_t slow : {0U, 3U, 6U, 7U}) EXPECT_EQ(race.samples(slow), 4) << slow;
  for (const std::size_t near : {1U, 2U, 4U, 5U}) EXPECT_EQ(race.samples(near), 4 + 8 + 16 + 32) << near;
}

TEST(Race, RoundsAreInterleavedAndShuffled) {
  Track track({10.0, 10.0, 10.0, 10.0});
  Race(4, 1.0).run(track.calls());
  std::set<std::vector<std::size_t>> rounds;
  for (const auto& order : track.orders) {
    for (std::size_t at = 0; at < order.size(); at += 4) {
      const std::vector<std::size_t> round(order.begin() + static_cast<std::ptrdiff_t>(at),
                                           order.begin() + static_cast<std::ptrdiff_t>(at) + 4);
      EXPECT_EQ(std::set<std::size_t>(round.begin(), round.end()).size(), 4U) << "every contender runs once per round";
      rounds.insert(round);
    }
  }
  EXPECT_GT(rounds.size(), 10U);
}

TEST(Race, StaysWithinTheBudget) {
  for (const double each_us : {1.0, 1e3, 1e5}) {
    Track track({each_us, 1.2 * each_us, 1.4 * each_us, 1.6 * each_us});
    Race(4, 1.0).run(track.calls());
    EXPECT_LE(track.total_us, 1e6 + 2 * 5.2 * each_us) << each_us;
  }
}

TEST(Race, EveryContenderRunsAtLeastTwice) {
  Track track({1e6, 2e6, 3e6});
  Race race(3, 0.001);
  EXPECT_EQ(race.run(track.calls()), 0U);
  for (const std::size_t contender : {0U, 1U, 2U}) EXPECT_EQ(track.count[contender], 2);
}

TEST(Race, OneContenderWins) {
  Track track({5.0});
  Race race(1, 1.0);
  EXPECT_EQ(race.run(track.calls()), 0U);
  EXPECT_EQ(race.samples(0), 4);
}

TEST(Race, AnOutlierDoesNotDecide) {
  int call = 0;
  const Race::TimeCalls times = [&](std::span<const std::size_t> order) {
    std::vector<double> result;
    for (const std::size_t contender : order) {
      const bool disturbed = contender == 0 && ++call % 5 == 0;
      result.push_back(disturbed ? 1000.0 : contender == 0 ? 10.0 : 12.0);
    }
    return result;
  };
  EXPECT_EQ(Race(2, 1.0).run(times), 0U);
}

TEST(Race, SamplesStayAvailableAfterAnError) {
  int batches = 0;
  Track track({10.0, 11.0});
  const Race::TimeCalls times = [&](std::span<const std::size_t> order) {
    if (++batches == 4) throw std::runtime_error("the device is gone");
    return track.calls()(order);
  };
  Race race(2, 1.0);
  EXPECT_THROW(race.run(times), std::runtime_error);
  EXPECT_EQ(race.samples(0), 4);
  EXPECT_EQ(race.median_us(1), 11.0);
}

TEST(Race, TimesOfZeroDoNotDivideByZero) {
  Track track({0.0, 0.0});
  EXPECT_EQ(Race(2, 1.0).run(track.calls()), 0U);
}

}  // namespace
}  // namespace tilewright::tune
