// What the host expects of the sizes of groups, which only the device knows. It concerns the ranking of kernels and the
// keys of tuning records, and never a result.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "tilewright/op/grouped_mode.hpp"

namespace tilewright::op {

/// Whether the groups have the same size along a mode.
enum class GroupSpread : std::uint8_t { unknown, equal, unequal };

/// The default expects nothing: stacked groups are then taken to have the mean size, padded and independent ones that
/// of their capacity.
struct GroupSummary {
  std::int64_t groups = 0;  // that are not empty; 0: nothing is expected
  /// Mean extents of these groups; 0: the capacity along a mode in which groups do not differ.
  std::int64_t m = 0, n = 0, k = 0;
  GroupSpread spread_m = GroupSpread::unknown, spread_n = GroupSpread::unknown, spread_k = GroupSpread::unknown;
  /// The largest group has at most 2^skew times as many operations as the mean.
  int skew = 0;

  bool is_given() const { return groups > 0; }
  bool operator==(const GroupSummary&) const = default;
};

/// Summarizes the sizes of the groups of a mode, along the extent in which they differ. Numbers of unequal groups are
/// rounded to three significant bits, so that similar calls have equal summaries. Without a group that is not empty the
/// result is the default. @pre the mode is neither none nor independent
GroupSummary summarize(GroupedMode mode, std::span<const std::int64_t> sizes);

/// Summarizes the sizes of independent groups, of which each has m, n and k. The mean of k is that of the operations.
GroupSummary summarize(std::span<const std::array<std::int64_t, 3>> extents);

/// The summary of `groups` groups of which only the mean size is expected. @pre as summarize()
GroupSummary expect_mean(GroupedMode mode, std::int64_t groups, std::int64_t size);

/// "8 groups of 512 (equal)" or "24 groups of 272x288x272 (largest 8)", for keys; empty if nothing is expected.
std::string to_string(const GroupSummary& summary);

}  // namespace tilewright::op
