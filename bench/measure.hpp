// Times contenders side by side: their calls are interleaved in random order and rotate over the operand sets.
#pragma once

#include <cstdint>
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

/// One timing per contender, in their order. The calls are timed by runtime::CallTimer.
/// @param set_count number of operand sets to rotate over
std::vector<Timing> measure(const runtime::CudaDevice& device, std::span<const Contender> contenders, int set_count,
                            const MeasureOptions& options);

}  // namespace tilewright::bench
