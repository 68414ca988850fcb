#include "tools/cli/number.hpp"

#include <charconv>
#include <cmath>
#include <system_error>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::cli {
namespace {

constexpr std::size_t kShown = 60;  // characters of an invalid text that a message quotes

// Converts with std::from_chars; invalid_argument unless the whole text is a number.
template <class T>
std::errc convert(const std::string& text, T& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return end == text.data() + text.size() ? status : std::errc::invalid_argument;
}

}  // namespace

template <class T>
std::optional<T> read_integer(const std::string& text, IntegerRange<T> range) {
  T value = 0;
  const bool is_valid = convert(text, value) == std::errc() && value >= range.least && value <= range.most;
  return is_valid ? std::optional<T>(value) : std::nullopt;
}

template std::optional<int> read_integer(const std::string&, IntegerRange<int>);

template <class T>
T parse_integer(const std::string& option, const std::string& text, IntegerRange<T> range) {
  if (const std::optional<T> value = read_integer(text, range)) return *value;
  throw InvalidArgument(fmt::format("{} takes an integer from {} to {}, got '{}'", option, range.least, range.most,
                                    printable(text, kShown)));
}

template int parse_integer(const std::string&, const std::string&, IntegerRange<int>);
template std::int64_t parse_integer(const std::string&, const std::string&, IntegerRange<std::int64_t>);
template std::uint32_t parse_integer(const std::string&, const std::string&, IntegerRange<std::uint32_t>);
template std::uint64_t parse_integer(const std::string&, const std::string&, IntegerRange<std::uint64_t>);

double parse_real(const std::string& option, const std::string& text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  double value = 0.0;
  const bool is_decimal =
      text.find_first_not_of("0123456789.eE+-") == std::string::npos;  // from_chars also takes "infinity" and "nan(1)"
  const std::errc status = is_decimal ? convert(text, value) : std::errc::invalid_argument;
  if (status == std::errc()) return value;
  const char* limits = status == std::errc::result_out_of_range
                           ? "that is 0 or has a magnitude from 4.9e-324 to 1.7e308"
                           : "such as -0.5 or 1e-3, or nan, inf or -inf";
  throw InvalidArgument(fmt::format("{} takes a number {}, got '{}'", option, limits, printable(text, kShown)));
}

}  // namespace tilewright::cli
