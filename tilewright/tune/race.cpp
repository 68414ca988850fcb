#include "tilewright/tune/race.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/median.hpp"

namespace tilewright::tune {
namespace {

constexpr std::array<int, 4> kStages{4, 8, 16, 32};  // rounds of each stage
constexpr int kMaxWarmups = 20;                      // rounds
constexpr double kWarmupShare = 0.05;                // of the budget, until clock and power have settled
constexpr double kNear = 1.05;                       // contenders within this factor of the best are not dropped
constexpr double kTie = 1.01;                        // the first contender within this factor of the best wins

}  // namespace

Race::Race(std::size_t contenders, double seconds)
    : budget_us_(1e6 * seconds), samples_us_(contenders), remaining_(contenders) {
  TILEWRIGHT_CHECK(contenders > 0, "a race without contenders");
  std::iota(remaining_.begin(), remaining_.end(), std::size_t{0});
}

std::size_t Race::run(const TimeCalls& time) {
  double round_us = call(time, 1, false);
  const int warmups = static_cast<int>(std::clamp(kWarmupShare * budget_us_ / round_us - 1.0, 0.0, 1.0 * kMaxWarmups));
  if (warmups > 0) round_us = call(time, warmups, false) / warmups;
  for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
    const double share_us = time_left_us() / static_cast<double>(kStages.size() - stage);
    if (stage > 0 && share_us < round_us) break;
    const int rounds = static_cast<int>(std::clamp(share_us / round_us, 1.0, 1.0 * kStages[stage]));
    call(time, rounds, true);
    if (remaining_.size() == 1) break;
    drop_slow_contenders();
    round_us = 0.0;
    for (const std::size_t contender : remaining_) round_us += median_us(contender);
  }
  const double best = best_us();
  return *std::ranges::find_if(remaining_, [&](std::size_t contender) { return median_us(contender) <= kTie * best; });
}

// Runs `rounds` rounds and returns their total time in microseconds.
double Race::call(const TimeCalls& time, int rounds, bool keeps) {
  check_interruption();
  std::vector<std::size_t> order;
  std::vector<std::size_t> round = remaining_;
  for (int i = 0; i < rounds; ++i) {
    std::ranges::shuffle(round, random_);
    order.insert(order.end(), round.begin(), round.end());
  }
  const std::vector<double> times_us = time(order);
  TILEWRIGHT_CHECK(times_us.size() == order.size(), "{} times for {} calls", times_us.size(), order.size());
  for (std::size_t i = 0; keeps && i < order.size(); ++i) samples_us_[order[i]].push_back(times_us[i]);
  const double sum_us = std::accumulate(times_us.begin(), times_us.end(), 0.0);
  spent_us_ += sum_us;
  return std::max(sum_us, 1e-3);  // not 0, since callers divide by it
}

double Race::median_us(std::size_t contender) const {
  TILEWRIGHT_CHECK(samples(contender) > 0, "contender {} has no samples", contender);
  return median(samples_us_[contender]);
}

double Race::best_us() const {
  double best = median_us(remaining_.front());
  for (const std::size_t contender : remaining_) best = std::min(best, median_us(contender));
  return best;
}

void Race::drop_slow_contenders() {
  std::vector<double> medians;
  for (const std::size_t contender : remaining_) medians.push_back(median_us(contender));
  std::ranges::sort(medians);
  const double slowest_us = std::max(medians[(medians.size() - 1) / 2], kNear * medians.front());
  std::erase_if(remaining_, [&](std::size_t contender) { return median_us(contender) > slowest_us; });
}

}  // namespace tilewright::tune
