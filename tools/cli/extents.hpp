// Parses extents on the command line, such as 128x128x8.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tools/cli/number.hpp"

namespace tilewright::cli {

/// "128x128x8" -> kRank positive integers. @throws InvalidArgument naming the option
template <std::size_t kRank>
std::array<int, kRank> parse_extents(const std::string& text, const char* option) {
  static_assert(kRank == 2 || kRank == 3);
  std::array<int, kRank> extents{};
  const std::vector<std::string> parts = split(text, 'x');
  bool is_good = parts.size() == extents.size();
  for (std::size_t i = 0; is_good && i < extents.size(); ++i) {
    const std::optional<int> extent = read_integer<int>(parts[i], {});
    is_good = extent.has_value();
    extents[i] = extent.value_or(0);
  }
  if (!is_good)
    throw InvalidArgument(
        fmt::format("{} must be {}, got '{}'", option,
                    kRank == 2 ? "two positive numbers such as 8x16" : "three positive numbers such as 128x128x8",
                    printable(text, 60)));
  return extents;
}

}  // namespace tilewright::cli
