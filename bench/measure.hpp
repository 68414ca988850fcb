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
  int least_samples = 10;  // timed calls of each contender: as many as fit `target_ms`, but not fewer
  int most_samples = 40;   // nor more
  int target_ms = 600;     // of GPU time, all contenders together
  int warmups = 3;         // untimed calls of each before, and more of them until
  int warmup_ms = 300;     // this has passed: clock and power settle
  std::uint64_t seed = 1;
};

/// How many timed calls each contender makes where one round of all takes `round_ms`.
int samples_for(double round_ms, const MeasureOptions& options);

/// Microseconds of one contender's calls, by events on the GPU.
struct Timing {
  double median_us = 0.0;
  double mad_us = 0.0;  // median absolute deviation from the median
  double least_us = 0.0;
  double most_us = 0.0;
  int samples = 0;
};

Timing summarize(std::vector<double> samples_us);

/// One timing a contender, in order. Every call is between two events. Calls are enqueued while the GPU is held back,
/// so that what a call costs the host does not show.
/// @param set_count how many operand sets to rotate over
std::vector<Timing> measure(const runtime::CudaDevice& device, std::span<const Contender> contenders, int set_count,
                            const MeasureOptions& options);

}  // namespace tilewright::bench
