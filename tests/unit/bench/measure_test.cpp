// Medians, deviations and rates.
#include "bench/measure.hpp"

#include <gtest/gtest.h>

#include "bench/report.hpp"

namespace tilewright::bench {
namespace {

TEST(Summarize, MedianAndDeviationIgnoreAnOutlier) {
  const Timing timing = summarize({10.0, 1000.0, 11.0, 9.0, 10.5});
  EXPECT_DOUBLE_EQ(timing.median_us, 10.5);
  EXPECT_DOUBLE_EQ(timing.mad_us, 0.5);
  EXPECT_DOUBLE_EQ(timing.least_us, 9.0);
  EXPECT_DOUBLE_EQ(timing.most_us, 1000.0);
  EXPECT_EQ(timing.samples, 5);
}

TEST(Summarize, TheMedianOfAnEvenCountIsTheMeanOfTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(summarize({1.0, 2.0, 4.0, 8.0}).median_us, 3.0);
  EXPECT_DOUBLE_EQ(summarize({7.0}).mad_us, 0.0);
}

TEST(SamplesFor, RoundsFitTheTargetTimeWithinTheLimits) {
  const MeasureOptions options{.least_samples = 10, .most_samples = 40, .target_ms = 600};
  EXPECT_EQ(samples_for(24.0, options), 25);
  EXPECT_EQ(samples_for(24.1, options), 24);
  EXPECT_EQ(samples_for(0.05, options), 40);
  EXPECT_EQ(samples_for(100.0, options), 10);
}

/// Calls of fixed durations, and the order in which they were made.
struct FakeTimer {
  std::vector<double> durations_us;
  std::vector<std::vector<std::size_t>> orders;

  TimeCalls calls() {
    return [this](const std::vector<std::size_t>& order) {
      orders.push_back(order);
      std::vector<double> times_us;
      for (const std::size_t one : order) times_us.push_back(durations_us[one]);
      return times_us;
    };
  }
};

TEST(Survey, RepeatsContendersThatAreNearTheBestWithinTheBudget) {
  FakeTimer timer{.durations_us = {1000.0, 2000.0, 3000.0, 3001.0, 90000.0}, .orders = {}};
  const std::vector<Timing> timings =
      survey(timer.calls(), 5, {.budget_ms = 30.0, .least_samples = 3, .most_samples = 9, .most_times_best = 3.0});
  ASSERT_EQ(timings.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_DOUBLE_EQ(timings[i].median_us, timer.durations_us[i]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(timings[i].samples, 5);  // 5 rounds of 6 ms
  EXPECT_EQ(timings[3].samples, 1);
  EXPECT_EQ(timings[4].samples, 1);
  ASSERT_EQ(timer.orders.size(), 2u);
  EXPECT_EQ(timer.orders[0].size(), 5u);
  EXPECT_EQ(timer.orders[1].size(), 15u);
}

TEST(Survey, KeepsTheLimitsOfSamples) {
  FakeTimer slow{.durations_us = {50000.0, 60000.0}, .orders = {}};
  EXPECT_EQ(survey(slow.calls(), 2, {.budget_ms = 30.0})[0].samples, 3);
  FakeTimer fast{.durations_us = {1.0}, .orders = {}};
  EXPECT_EQ(survey(fast.calls(), 1, {.budget_ms = 30.0})[0].samples, 9);
}

TEST(Report, RatesCountTwoOperationsPerProduct) {
  const Problem problem = *parse_problem("dtype=f16 batch=3 m=1000 n=1000 k=1000");
  EXPECT_DOUBLE_EQ(tera_ops(problem, 2.0), 3000.0);
}

TEST(Report, TimingOfAWrongRowIsNotFound) {
  Outcome report;
  Row wrong{.contender = "cublaslt", .detail = "", .verdict = {}, .timing = {}};
  report.rows.push_back(wrong);
  EXPECT_EQ(find_timing(report, "cublaslt"), nullptr);
  report.rows[0].verdict.right = true;
  EXPECT_EQ(find_timing(report, "cublaslt"), &report.rows[0].timing);
  EXPECT_EQ(find_timing(report, "tilewright"), nullptr);
}

}  // namespace
}  // namespace tilewright::bench
