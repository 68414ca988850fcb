// The measurement loop.
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "stream_hold.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/runtime/event.hpp"
#include "tilewright/runtime/stream.hpp"

namespace tilewright::bench {
namespace {

/// Calls that are enqueued while the stream is held. With up to 5 launches and events each, they fit into the driver's
/// queue.
constexpr std::size_t kHeldCalls = 64;

using Clock = std::chrono::steady_clock;

double median_of_sorted(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

struct TimedCall {
  std::size_t contender;
  runtime::Event start, stop;
};

/// Calls all contenders in rounds until both warm-up limits are reached. Returns the milliseconds of the shortest
/// round.
template <class NextSet>
double warm_up(const runtime::Stream& stream, std::span<const Contender> contenders, const NextSet& next_set,
               const MeasureOptions& options) {
  const auto begin = Clock::now();
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < std::max(1, options.warmups) || since(begin) < options.warmup_ms; ++i) {
    const auto round = Clock::now();
    for (const Contender& contender : contenders) contender.run(next_set(), stream.handle());
    stream.synchronize();
    shortest = std::min(shortest, since(round));
  }
  return shortest;
}

}  // namespace

int samples_for(double round_ms, const MeasureOptions& options) {
  const double fitting = std::floor(options.target_ms / round_ms);
  return static_cast<int>(std::clamp(fitting, double(options.least_samples), double(options.most_samples)));
}

Timing summarize(std::vector<double> samples_us) {
  TILEWRIGHT_CHECK(!samples_us.empty(), "no samples to summarize");
  std::ranges::sort(samples_us);
  const double median = median_of_sorted(samples_us);
  std::vector<double> deviations;
  for (const double sample : samples_us) deviations.push_back(std::abs(sample - median));
  std::ranges::sort(deviations);
  return {median, median_of_sorted(deviations), samples_us.front(), samples_us.back(),
          static_cast<int>(samples_us.size())};
}

std::vector<Timing> measure(const runtime::CudaDevice& device, std::span<const Contender> contenders, int set_count,
                            const MeasureOptions& options) {
  const runtime::ContextScope scope(*device.context());
  const runtime::Stream stream(device.context());
  int set = 0;
  const auto next_set = [&] { return set = (set + 1) % set_count; };
  const int sample_count = samples_for(warm_up(stream, contenders, next_set, options), options);

  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 generator(options.seed);
  std::vector<TimedCall> calls;
  for (int i = 0; i < sample_count; ++i) {
    std::ranges::shuffle(order, generator);
    for (const std::size_t index : order) {
      calls.push_back({index, runtime::Event(device.context()), runtime::Event(device.context())});
    }
  }
  for (std::size_t begin = 0; begin < calls.size(); begin += kHeldCalls) {
    const StreamHold hold(stream.handle());
    for (const TimedCall& call : std::span(calls).subspan(begin, std::min(kHeldCalls, calls.size() - begin))) {
      call.start.record(stream.handle());
      contenders[call.contender].run(next_set(), stream.handle());
      call.stop.record(stream.handle());
    }
  }
  stream.synchronize();

  std::vector<std::vector<double>> samples(contenders.size());
  for (const TimedCall& call : calls) {
    samples[call.contender].push_back(1000.0 * call.stop.milliseconds_since(call.start));
  }
  std::vector<Timing> timings;
  for (std::vector<double>& of_one : samples) timings.push_back(summarize(std::move(of_one)));
  return timings;
}

}  // namespace tilewright::bench
