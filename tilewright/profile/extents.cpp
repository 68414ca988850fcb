#include "tilewright/profile/extents.hpp"

#include <charconv>
#include <optional>

#include "tilewright/base/text.hpp"

namespace tilewright::profile {
namespace {

constexpr std::size_t kMaxExtents = 100000;                       // in one list
constexpr std::int64_t kMaxExtent = (std::int64_t{1} << 31) - 1;  // that the command line takes

/// The integers of a text that are separated by `separator`; nullopt if a part is no integer.
std::optional<std::vector<std::int64_t>> integers(std::string_view text, char separator) {
  std::vector<std::int64_t> values;
  while (true) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, end);
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || stop != part.data() + part.size() || part.empty()) return std::nullopt;
    values.push_back(value);
    if (end == text.size()) return values;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<std::vector<std::int64_t>> parse_extents(std::string_view text, std::string_view name) {
  std::vector<std::int64_t> extents;
  std::string_view rest = text;
  while (true) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, end);
    const std::optional<std::vector<std::int64_t>> bounds = integers(part, ':');
    if (!bounds || bounds->size() > 3) {
      return refuse(
          "{} must be an extent (64), a list (64,128), a range that doubles (128:4096) or a range with a step "
          "(128:4096:128), got '{}'",
          name, printable(text));
    }
    const std::int64_t first = bounds->front(), last = bounds->size() > 1 ? (*bounds)[1] : first;
    if (first < 1 || last > kMaxExtent)
      return refuse("{} must be 1 to {}, got '{}'", name, kMaxExtent, printable(text));
    if (last < first) return refuse("{} has the range {}: its last value is below the first", name, part);
    if (bounds->size() == 3 && bounds->back() < 1)
      return refuse("{} has the range {}: its step must be at least 1", name, part);
    for (std::int64_t value = first; value <= last;) {
      if (extents.size() == kMaxExtents)
        return refuse("{} has more than {} extents: '{}'", name, kMaxExtents, printable(text));
      extents.push_back(value);
      value += bounds->size() == 3 ? bounds->back() : value;
    }
    if (end == rest.size()) return extents;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace tilewright::profile
