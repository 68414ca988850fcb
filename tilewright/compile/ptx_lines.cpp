#include "tilewright/compile/ptx_lines.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "tilewright/base/text.hpp"

namespace tilewright::compile {
namespace {

constexpr std::size_t kMaxInstruction = 160;

std::optional<int> number_at(std::string_view text, std::size_t at) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

/// The number after "line " in a message of ptxas.
std::optional<int> line_named_in(std::string_view message) {
  constexpr std::string_view kLine = "line ";
  if (message.find("ptxas") == std::string_view::npos) return std::nullopt;
  const std::size_t at = message.find(kLine);
  return at == std::string_view::npos ? std::nullopt : number_at(message, at + kLine.size());
}

/// The place that the last .loc up to line `last` names, "kernel.tw:5".
std::string source_place(const std::vector<std::string>& lines, int last) {
  std::map<int, std::string> files;  // their .file lines follow the code
  for (const std::string& line : lines) {
    const std::size_t at = line.find(".file"), quote = line.find('"');
    if (at == std::string::npos || quote == std::string::npos) continue;
    const std::size_t digits = line.find_first_of("0123456789", at);
    const std::optional<int> number = digits < quote ? number_at(line, digits) : std::nullopt;
    if (number) files[*number] = line.substr(quote + 1, line.find('"', quote + 1) - quote - 1);
  }
  for (auto i = static_cast<std::size_t>(last); i > 0; --i) {
    const std::string& line = lines[i - 1];
    const std::size_t at = line.find(".loc");
    if (at == std::string::npos) continue;
    const std::size_t file = line.find_first_of("0123456789", at);
    const std::size_t space = line.find_first_of(" \t", file);
    const std::size_t number = line.find_first_of("0123456789", space);
    if (number == std::string::npos) return {};
    const std::optional<int> index = number_at(line, file), of_source = number_at(line, number);
    if (!index || !of_source || *of_source == 0 || !files.contains(*index)) return {};
    return fmt::format("{}:{}", files[*index], *of_source);
  }
  return {};
}

}  // namespace

std::string with_source_lines(std::string_view log, std::string_view ptx) {
  const std::vector<std::string> lines = split(std::string(ptx), '\n');
  std::string result;
  for (const std::string& message : split(std::string(log), '\n')) {
    if (message.empty()) continue;
    result += message + "\n";
    const std::optional<int> line = line_named_in(message);
    if (!line || *line < 1 || static_cast<std::size_t>(*line) > lines.size()) continue;
    const std::string place = source_place(lines, *line);
    if (place.empty()) continue;
    const std::string& text = lines[static_cast<std::size_t>(*line) - 1];
    const std::size_t begin = text.find_first_not_of(" \t");
    const std::string instruction = begin == std::string::npos ? "" : text.substr(begin, kMaxInstruction);
    result += fmt::format("  at {}: {}\n", place, instruction);
  }
  return result;
}

}  // namespace tilewright::compile
