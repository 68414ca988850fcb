// Integer division that rounds in a given direction, and multiples.
#pragma once

#include <concepts>
#include <type_traits>

namespace tilewright {

/// The least integer that is not less than x / y. @pre y > 0
template <std::integral X, std::integral Y, class Result = std::common_type_t<X, Y>>
constexpr Result ceil_div(X x, Y y) {
  const auto dividend = static_cast<Result>(x), divisor = static_cast<Result>(y);
  return static_cast<Result>(dividend / divisor + (dividend % divisor > 0 ? 1 : 0));
}

/// The greatest integer that is not greater than x / y. @pre y > 0
template <std::integral X, std::integral Y, class Result = std::common_type_t<X, Y>>
constexpr Result floor_div(X x, Y y) {
  const auto dividend = static_cast<Result>(x), divisor = static_cast<Result>(y);
  return static_cast<Result>(dividend / divisor - (dividend % divisor < 0 ? 1 : 0));
}

/// The least multiple of `unit` that is not less than x. @pre unit > 0
template <std::integral X, std::integral Y>
constexpr std::common_type_t<X, Y> round_up(X x, Y unit) {
  return static_cast<std::common_type_t<X, Y>>(ceil_div(x, unit) * unit);
}

}  // namespace tilewright
