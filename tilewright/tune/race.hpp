// Which of several contenders is the fastest, in as little time as tells: rounds in random order, the slow given up
// early.
#pragma once

#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <vector>

namespace tilewright::tune {

/// Successive halving (Karnin, Koren, Somekh, Almost Optimal Exploration in Multi-Armed Bandits, 2013): after each
/// stage the slower half goes, except who is within 5 % of the best.
class Race {
 public:
  /// Calls the contenders named, one after the other, and gives each call's time in microseconds.
  using TimeCalls = std::function<std::vector<double>(std::span<const std::size_t> order)>;

  /// `seconds`: of the calls' own time, kept to by fewer rounds; each contender is called at least twice.
  /// @pre contenders > 0
  Race(std::size_t contenders, double seconds);

  /// Returns the winner: the first of those within 1 % of the least median.
  /// What `time` and check_interruption() throw comes through, and what was measured by then can still be read.
  std::size_t run(const TimeCalls& time);

  int samples(std::size_t contender) const { return static_cast<int>(lanes_[contender].size()); }
  /// Of one that has samples.
  double median_us(std::size_t contender) const;

 private:
  double call(const TimeCalls& time, int rounds, bool keeps);
  double time_left_us() const { return budget_us_ - spent_us_; }
  double best_us() const;
  void give_up_the_slow();

  double budget_us_;
  double spent_us_ = 0.0;
  std::vector<std::vector<double>> lanes_;  // samples of each contender
  std::vector<std::size_t> remaining_;      // in order
  std::mt19937_64 random_{1};
};

}  // namespace tilewright::tune
