// Times contenders side by side: their calls are interleaved in random order and rotate over the operand sets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "contender.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::bench {

struct MeasureOptions {
  int least_samples = 10;  // timed calls of each contender: as many as fit into target_ms, but at least this many
  int most_samples = 40;   // and at most this many
  int target_ms = 600;     // GPU time of the timed calls of all contenders together
  int warmups = 3;         // untimed calls of each contender before the timed ones, at least
  int warmup_ms = 300;     // and at least this long, until clock and power have settled
  std::uint64_t seed = 1;
};

/// The number of timed calls of each contender if one call of all contenders takes `round_ms`.
int samples_for(double round_ms, const MeasureOptions& options);

/// Times of one contender's calls in microseconds.
struct Timing {
  double median_us = 0.0;
  double mad_us = 0.0;  // median absolute deviation from the median
  double least_us = 0.0;
  double most_us = 0.0;
  int samples = 0;
};

Timing summarize(std::vector<double> samples_us);

/// Runs one call of each contender in the list, in its order, and returns the GPU time of each in microseconds.
using TimeCalls = std::function<std::vector<double>(const std::vector<std::size_t>& contenders)>;

/// TimeCalls by runtime::CallTimer. Calls rotate over `set_count` operand sets. `device` and `contenders` must outlive
/// it.
TimeCalls call_timer(const runtime::CudaDevice& device, std::span<const Contender> contenders, int set_count);

/// Limits of a short measurement of many contenders.
struct SurveyOptions {
  double budget_ms = 300.0;  // GPU time of the timed calls, unless least_samples takes longer
  int least_samples = 3;
  int most_samples = 9;
  double most_times_best = 3.0;  // contenders that were this much slower in the first call are not called again
  std::uint64_t seed = 1;
};

/// Short timings of many contenders: one call of each, then as many rounds as fit the budget, without the contenders
/// that are far from the best. Those keep the time of their first call as their only sample.
std::vector<Timing> survey(const TimeCalls& time, std::size_t contenders, const SurveyOptions& options);

/// One timing per contender, in their order. The calls are timed by runtime::CallTimer.
/// @param set_count number of operand sets to rotate over
std::vector<Timing> measure(const runtime::CudaDevice& device, std::span<const Contender> contenders, int set_count,
                            const MeasureOptions& options);

}  // namespace tilewright::bench
