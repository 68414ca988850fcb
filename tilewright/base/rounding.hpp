// Quotients and multiples of integers, rounded up.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace tilewright {

/// ceil(x / y). @pre x >= 0, y > 0
constexpr std::int64_t ceil_div(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

/// The least multiple of `unit` that is not less than `value`. @pre value >= 0, unit > 0
template <std::integral Integer>
constexpr Integer round_up(Integer value, std::type_identity_t<Integer> unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace tilewright
