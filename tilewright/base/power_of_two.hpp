// Powers of two among integers of any type.
#pragma once

#include <bit>
#include <concepts>
#include <type_traits>

namespace tilewright {

/// Whether n is 1, 2, 4, ...; false for 0 and negative numbers.
template <std::integral T>
constexpr bool is_power_of_two(T n) {
  return n > 0 && std::has_single_bit(static_cast<std::make_unsigned_t<T>>(n));
}

}  // namespace tilewright
