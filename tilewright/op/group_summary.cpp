#include "tilewright/op/group_summary.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "tilewright/base/text.hpp"

namespace tilewright::op {
namespace {

/// The nearest number with at most three significant bits.
std::int64_t rounded(double number) {
  const auto whole = static_cast<std::int64_t>(std::llround(number));
  if (whole < 8) return std::max<std::int64_t>(whole, 1);
  const int shift = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(whole))) - 3;
  const std::int64_t half = std::int64_t{1} << (shift - 1);
  return (whole + half) >> shift << shift;
}

/// The binary logarithm of the largest over the mean, rounded up.
int skew_of(double largest, double mean) {
  return std::max(0, static_cast<int>(std::ceil(std::log2(largest / mean) - 1e-9)));
}

/// Sets the mean along the mode in which groups differ.
void set_size(GroupSummary& summary, GroupedMode mode, std::int64_t size, GroupSpread spread) {
  if (differs_in_m(mode)) {
    summary.m = size;
    summary.spread_m = spread;
  } else if (differs_in_n(mode)) {
    summary.n = size;
    summary.spread_n = spread;
  } else {
    summary.k = size;
    summary.spread_k = spread;
  }
}

}  // namespace

GroupSummary summarize(GroupedMode mode, std::span<const std::int64_t> sizes) {
  GroupSummary summary;
  double total = 0;
  std::int64_t largest = 0, least = 0;
  for (const std::int64_t size : sizes) {
    if (size <= 0) continue;
    least = summary.groups++ == 0 ? size : std::min(least, size);
    largest = std::max(largest, size);
    total += static_cast<double>(size);
  }
  if (summary.groups == 0) return {};
  if (least == largest) {
    set_size(summary, mode, largest, GroupSpread::equal);
    return summary;
  }
  const double mean = total / static_cast<double>(summary.groups);
  summary.groups = rounded(static_cast<double>(summary.groups));
  set_size(summary, mode, rounded(mean), GroupSpread::unequal);
  summary.skew = skew_of(static_cast<double>(largest), mean);
  return summary;
}

GroupSummary summarize(std::span<const std::array<std::int64_t, 3>> extents) {
  std::vector<std::array<double, 3>> computed;  // groups that multiply something
  for (const auto& [m, n, k] : extents) {
    if (m > 0 && n > 0 && k > 0)
      computed.push_back({static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)});
  }
  if (computed.empty()) return {};
  const auto count = static_cast<double>(computed.size());
  std::array<double, 3> mean{};
  double operations = 0, most = 0;
  for (const std::array<double, 3>& each : computed) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += each[i] / count;
    operations += each[0] * each[1] * each[2] / count;
    most = std::max(most, each[0] * each[1] * each[2]);
  }
  const auto is_equal = [&](std::size_t mode) {
    return std::ranges::all_of(computed, [&](const auto& each) { return each[mode] == computed[0][mode]; });
  };
  const auto shown = [&](std::size_t mode, double value) {
    return is_equal(mode) ? static_cast<std::int64_t>(computed[0][mode]) : rounded(value);
  };
  GroupSummary summary{.m = shown(0, mean[0]), .n = shown(1, mean[1]), .k = shown(2, operations / mean[0] / mean[1])};
  const bool are_alike = is_equal(0) && is_equal(1) && is_equal(2);
  summary.groups = are_alike ? static_cast<std::int64_t>(computed.size()) : rounded(count);
  summary.spread_m = is_equal(0) ? GroupSpread::equal : GroupSpread::unequal;
  summary.spread_n = is_equal(1) ? GroupSpread::equal : GroupSpread::unequal;
  summary.spread_k = is_equal(2) ? GroupSpread::equal : GroupSpread::unequal;
  summary.skew = skew_of(most, operations);
  return summary;
}

GroupSummary expect_mean(GroupedMode mode, std::int64_t groups, std::int64_t size) {
  GroupSummary summary;
  if (groups <= 0 || size <= 0) return summary;
  summary.groups = groups;
  set_size(summary, mode, size, GroupSpread::unknown);
  return summary;
}

std::string to_string(const GroupSummary& summary) {
  if (!summary.is_given()) return {};
  std::vector<std::string> extents;
  for (const std::int64_t each : {summary.m, summary.n, summary.k}) {
    if (each != 0) extents.push_back(std::to_string(each));
  }
  const std::array spreads{summary.spread_m, summary.spread_n, summary.spread_k};
  const std::string spread = std::ranges::count(spreads, GroupSpread::unequal) > 0
                                 ? fmt::format("largest {}", std::int64_t{1} << std::min(summary.skew, 62))
                             : std::ranges::count(spreads, GroupSpread::equal) > 0 ? "equal"
                                                                                   : "mean";
  return fmt::format("{} groups of {} ({})", summary.groups, fmt::join(extents, "x"), spread);
}

}  // namespace tilewright::op
