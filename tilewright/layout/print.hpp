// Printing of tuples, layouts and swizzles by fmt and by streams (for messages of failed tests).
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <ostream>
#include <string>

#include "tilewright/layout/swizzle.hpp"

namespace tilewright::layout {

template <class T>
concept Printable = std::same_as<T, Number> || std::same_as<T, IntTuple> || std::same_as<T, Layout> ||
    std::same_as<T, Swizzle> || std::same_as<T, ComposedLayout>;

template <Printable T>
std::ostream& operator<<(std::ostream& out, const T& value) {
  return out << to_string(value);
}

}  // namespace tilewright::layout

template <tilewright::layout::Printable T>
struct fmt::formatter<T> : fmt::formatter<std::string> {
  auto format(const T& value, fmt::format_context& context) const {
    return fmt::formatter<std::string>::format(to_string(value), context);
  }
};
