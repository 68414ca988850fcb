// Text: identifiers, joining, escaping, and a writer of source code.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// Whether the text matches ^[A-Za-z_][A-Za-z0-9_]{0,127}$ and so may become a name in emitted source.
bool is_identifier(std::string_view text);

/// "128x128x32"
std::string join(const std::vector<std::int64_t>& values, std::string_view separator);

std::vector<std::string> split(std::string_view text, char separator);

/// `text` for a message: bytes that are not printable ASCII are escaped, and all after the first `limit` are cut off.
std::string printable(std::string_view text, std::size_t limit = 200);

/// The first line of an error's text, for a table: printable, of at most 400 bytes.
std::string first_line(std::string_view text);

/// Builds source code line by line, indented by two spaces per level.
class SourceWriter {
 public:
  template <class... Args>
  SourceWriter& line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(2 * static_cast<std::size_t>(level_), ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
    return *this;
  }
  SourceWriter& blank() {
    text_ += '\n';
    return *this;
  }
  SourceWriter& indent() {
    ++level_;
    return *this;
  }
  SourceWriter& dedent() {
    --level_;
    return *this;
  }
  std::string take() && { return std::move(text_); }

 private:
  std::string text_;
  int level_ = 0;
};

}  // namespace tilewright
