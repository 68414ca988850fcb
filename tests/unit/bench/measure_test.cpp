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
