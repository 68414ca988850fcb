#include "tilewright/base/text.hpp"

#include <algorithm>

namespace tilewright {

bool is_identifier(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && text.size() <= 128 && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || is_digit(c); });
}

std::string join(const std::vector<std::int64_t>& values, std::string_view separator) {
  return fmt::format("{}", fmt::join(values, separator));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string result;
  for (const char c : text.substr(0, limit)) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code >= 0x7f) {
      result += fmt::format("\\x{:02x}", code);
    } else {
      result += c;
    }
  }
  if (text.size() > limit) result += fmt::format("... ({} characters)", text.size());
  return result;
}

std::string first_line(std::string_view text) { return printable(text.substr(0, text.find('\n')), 400); }

}  // namespace tilewright
