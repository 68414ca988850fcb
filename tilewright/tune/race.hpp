// Finds the fastest of several contenders within a time budget: they are timed in rounds of random order, and slow ones
// are dropped early.
#pragma once

#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <vector>

namespace tilewright::tune {

/// Successive halving (Karnin, Koren, Somekh, Almost Optimal Exploration in Multi-Armed Bandits, 2013): after each
/// stage the slower half is dropped, except contenders within 5 % of the best.
class Race {
 public:
  /// Runs the contenders in this order and returns the time of each run in microseconds.
  using TimeCalls = std::function<std::vector<double>(std::span<const std::size_t> order)>;

  /// `seconds` is a budget for the sum of all times. It limits the number of rounds, but each contender runs at least
  /// twice.
  /// @pre contenders > 0
  Race(std::size_t contenders, double seconds);

  /// Returns the winner: the first contender within 1 % of the smallest median. Exceptions of `time` and of
  /// check_interruption() are propagated; samples taken before stay available.
  std::size_t run(const TimeCalls& time);

  int samples(std::size_t contender) const { return static_cast<int>(samples_us_[contender].size()); }
  /// @pre samples(contender) > 0
  double median_us(std::size_t contender) const;

 private:
  double call(const TimeCalls& time, int rounds, bool keeps);
  double time_left_us() const { return budget_us_ - spent_us_; }
  double best_us() const;
  void drop_slow_contenders();

  double budget_us_;
  double spent_us_ = 0.0;
  std::vector<std::vector<double>> samples_us_;  // for each contender
  std::vector<std::size_t> remaining_;           // in ascending order
  std::mt19937_64 random_{1};
};

}  // namespace tilewright::tune
