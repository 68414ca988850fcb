// Times contenders side by side: interleaved call by call, in random order, on rotating operands.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "contender.hpp"
#include "tilewright/runtime/cuda_device.hpp"

namespace tilewright::bench {

struct MeasureOptions {
  int samples = 50;     // timed calls of each contender
  int warmups = 3;      // untimed calls of each before, and more of them until
  int warmup_ms = 300;  // this has passed: clock and power settle
  std::uint64_t seed = 1;
};

/// Microseconds of one contender's calls, by events on the GPU.
struct Timing {
  double median_us = 0.0;
  double mad_us = 0.0;  // median absolute deviation from the median
  double least_us = 0.0;
  double most_us = 0.0;
  int samples = 0;
};

Timing summarize(std::vector<double> samples_us);

/// One timing a contender, in order. Every call is between two events; the whole round is enqueued ahead of the GPU, so
/// that host time does not show unless a call costs the host more than it costs the GPU.
/// @param set_count how many operand sets to rotate over
std::vector<Timing> measure(const runtime::CudaDevice& device, std::span<const Contender> contenders, int set_count,
                            const MeasureOptions& options);

}  // namespace tilewright::bench
