// How the groups of a grouped GEMM lie in memory, and which of their extents differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright::op {

/// The extents m, n and k of a problem with groups are its capacity; only the device knows the sizes of the groups.
/// In a ragged mode the groups are stacked: each begins where the one before ends. In a masked mode each group has a
/// matrix of the batch, of which it uses the first rows or columns. Independent groups are problems of their own.
enum class GroupedMode : std::uint8_t {
  none,         // no groups: a matrix or a batch
  ragged_m,     // rows of A, C and D are stacked
  ragged_n,     // columns of B, C and D are stacked
  ragged_k,     // columns of A and rows of B are stacked
  masked_m,     // the first rows of each matrix of A, C and D
  masked_n,     // the first columns of each matrix of B, C and D
  masked_k,     // the first columns of each matrix of A, and the first rows of each of B
  independent,  // each group has extents, matrices and leading dimensions of its own
};

/// "none", "ragged_m"
std::string_view name(GroupedMode mode);

/// The inverse of name(); nullopt for "none", too.
std::optional<GroupedMode> parse_grouped_mode(std::string_view text);

/// The mode of the transposed problem, D' = B' * A'.
constexpr GroupedMode transposed(GroupedMode mode) {
  switch (mode) {
    case GroupedMode::ragged_m:
      return GroupedMode::ragged_n;
    case GroupedMode::ragged_n:
      return GroupedMode::ragged_m;
    case GroupedMode::masked_m:
      return GroupedMode::masked_n;
    case GroupedMode::masked_n:
      return GroupedMode::masked_m;
    case GroupedMode::ragged_k:
    case GroupedMode::masked_k:
    case GroupedMode::independent:
    case GroupedMode::none:
      return mode;
  }
  return mode;
}

/// Whether m, or n, is the one extent that differs between the groups.
constexpr bool differs_in_m(GroupedMode mode) { return mode == GroupedMode::ragged_m || mode == GroupedMode::masked_m; }
constexpr bool differs_in_n(GroupedMode mode) { return mode == GroupedMode::ragged_n || mode == GroupedMode::masked_n; }
/// Whether k is the one extent that differs between the groups.
constexpr bool ends_along_k(GroupedMode mode) { return mode == GroupedMode::ragged_k || mode == GroupedMode::masked_k; }
/// Whether groups may have no elements of k although others have.
constexpr bool differs_in_k(GroupedMode mode) { return ends_along_k(mode) || mode == GroupedMode::independent; }
/// Whether operand `role`, 'A' to 'D', is one matrix in which the groups are stacked.
constexpr bool is_stacked(GroupedMode mode, char role) {
  switch (mode) {
    case GroupedMode::ragged_m:
      return role != 'B';
    case GroupedMode::ragged_n:
      return role != 'A';
    case GroupedMode::ragged_k:
      return role == 'A' || role == 'B';
    default:
      return false;
  }
}
/// Whether the groups are stacked, so that each begins where the one before ends.
constexpr bool is_ragged(GroupedMode mode) {
  return mode == GroupedMode::ragged_m || mode == GroupedMode::ragged_n || mode == GroupedMode::ragged_k;
}

}  // namespace tilewright::op
