#include "tilewright/base/spelling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace tilewright {
namespace {

constexpr std::size_t kLongest = 80;  // longer words are not compared

char lower(char letter) { return static_cast<char>(std::tolower(static_cast<unsigned char>(letter))); }

}  // namespace

std::size_t edits(std::string_view x, std::string_view y) {
  std::vector<std::size_t> before(y.size() + 1), last(y.size() + 1), row(y.size() + 1);
  for (std::size_t j = 0; j <= y.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= x.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= y.size(); ++j) {
      const bool is_equal = lower(x[i - 1]) == lower(y[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (is_equal ? 0 : 1)});
      const bool is_swap = i > 1 && j > 1 && lower(x[i - 1]) == lower(y[j - 2]) && lower(x[i - 2]) == lower(y[j - 1]);
      if (is_swap) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[y.size()];
}

std::string closest(std::string_view word, std::span<const std::string> known) {
  if (word.empty() || word.size() > kLongest) return {};
  std::size_t least = std::max<std::size_t>(word.size() > 2 ? 2 : 1, word.size() / 3) + 1;
  const std::string* found = nullptr;
  for (const std::string& each : known) {
    if (each.size() > kLongest) continue;
    const std::size_t count = edits(word, each);
    // Two words of which nothing is the same are not alike, however short they are.
    if (count >= least || count >= std::max(word.size(), each.size())) continue;
    least = count;
    found = &each;
  }
  return found == nullptr ? std::string() : *found;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  const std::string found = closest(word, known);
  return found.empty() ? std::string() : fmt::format(": did you mean '{}'?", found);
}

}  // namespace tilewright
