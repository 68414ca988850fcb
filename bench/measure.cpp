// The measurement loop.
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/median.hpp"
#include "tilewright/runtime/call_timer.hpp"

namespace tilewright::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// The contender of each call: rounds of all contenders, each in random order.
std::vector<std::size_t> shuffled_rounds(std::size_t contenders, int rounds, std::uint64_t seed) {
  std::vector<std::size_t> round(contenders);
  std::iota(round.begin(), round.end(), std::size_t{0});
  std::mt19937_64 generator(seed);
  std::vector<std::size_t> order;
  for (int i = 0; i < rounds; ++i) {
    std::ranges::shuffle(round, generator);
    order.insert(order.end(), round.begin(), round.end());
  }
  return order;
}

/// Times rounds of all contenders until both warm-up limits are reached. Returns the milliseconds of the shortest
/// round.
double warm_up(const TimeCalls& time, std::size_t contenders, const MeasureOptions& options) {
  const std::vector<std::size_t> round = shuffled_rounds(contenders, 1, options.seed);
  const auto end = Clock::now() + std::chrono::milliseconds(options.warmup_ms);
  double shortest_us = std::numeric_limits<double>::infinity();
  for (int i = 0; i < std::max(1, options.warmups) || Clock::now() < end; ++i) {
    const std::vector<double> times_us = time(round);
    shortest_us = std::min(shortest_us, std::accumulate(times_us.begin(), times_us.end(), 0.0));
  }
  return shortest_us / 1000.0;
}

std::vector<Timing> summarize_all(std::vector<std::vector<double>> samples_us) {
  std::vector<Timing> timings;
  for (std::vector<double>& of_one : samples_us) timings.push_back(summarize(std::move(of_one)));
  return timings;
}

}  // namespace

int samples_for(double round_ms, const MeasureOptions& options) {
  const double fitting = std::floor(options.target_ms / round_ms);
  return static_cast<int>(std::clamp(fitting, double(options.least_samples), double(options.most_samples)));
}

Timing summarize(std::vector<double> samples_us) {
  TILEWRIGHT_CHECK(!samples_us.empty(), "no samples to summarize");
  const double center = median(samples_us);
  std::vector<double> deviations;
  for (const double sample : samples_us) deviations.push_back(std::abs(sample - center));
  const auto [least, most] = std::ranges::minmax(samples_us);
  return {center, median(std::move(deviations)), least, most, static_cast<int>(samples_us.size())};
}

TimeCalls call_timer(const runtime::CudaDevice& device, std::span<const Contender> contenders, int set_count) {
  return [timer = std::make_shared<runtime::CallTimer>(device.context()), contenders, set_count,
          set = 0](const std::vector<std::size_t>& order) mutable {
    return timer->time(order.size(), [&](std::size_t call, runtime::StreamHandle stream) {
      set = (set + 1) % set_count;
      contenders[order[call]].run(set, stream);
    });
  };
}

std::vector<Timing> survey(const TimeCalls& time, std::size_t contenders, const SurveyOptions& options) {
  const std::vector<std::size_t> all = shuffled_rounds(contenders, 1, options.seed);
  const std::vector<double> first_us = time(all);
  const double near_us = options.most_times_best * *std::ranges::min_element(first_us);
  std::vector<std::vector<double>> samples_us(contenders);
  std::vector<std::size_t> near;
  double round_us = 0.0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (first_us[i] > near_us) {
      samples_us[all[i]].push_back(first_us[i]);
      continue;
    }
    near.push_back(all[i]);
    round_us += first_us[i];
  }
  const double fitting = std::floor(1000.0 * options.budget_ms / round_us);
  const auto rounds =
      static_cast<int>(std::clamp(fitting, double(options.least_samples), double(options.most_samples)));
  std::vector<std::size_t> order;
  for (const std::size_t place : shuffled_rounds(near.size(), rounds, options.seed)) order.push_back(near[place]);
  const std::vector<double> times_us = time(order);
  for (std::size_t i = 0; i < order.size(); ++i) samples_us[order[i]].push_back(times_us[i]);
  return summarize_all(std::move(samples_us));
}

std::vector<Timing> measure(const runtime::CudaDevice& device, std::span<const Contender> contenders, int set_count,
                            const MeasureOptions& options) {
  const TimeCalls time = call_timer(device, contenders, set_count);
  const int sample_count = samples_for(warm_up(time, contenders.size(), options), options);
  const std::vector<std::size_t> order = shuffled_rounds(contenders.size(), sample_count, options.seed);
  const std::vector<double> times_us = time(order);
  std::vector<std::vector<double>> samples_us(contenders.size());
  for (std::size_t i = 0; i < order.size(); ++i) samples_us[order[i]].push_back(times_us[i]);
  return summarize_all(std::move(samples_us));
}

}  // namespace tilewright::bench
