// Parses numbers on the command line. A text is refused unless all of it is one number in the range.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

namespace tilewright::cli {

/// The integers that an option takes; both ends are included.
template <class T>
struct IntegerRange {
  T least = 1;
  T most = std::numeric_limits<T>::max();
};

/// "-12" -> -12: decimal digits, with a minus sign where `least` is negative. Nothing else is accepted: no "+5", "1e3",
/// "0x10", spaces or empty text. nullopt if `text` is not such a number or is outside the range.
template <class T>
std::optional<T> read_integer(const std::string& text, IntegerRange<T> range);

/// As read_integer(). @throws InvalidArgument, naming the option, the range and the text
template <class T>
T parse_integer(const std::string& option, const std::string& text, IntegerRange<T> range);

/// Parses "-0.5" or "1e-3" to the nearest f64, and "nan", "inf" and "-inf". The text may not have a "+" sign in front,
/// spaces or hexadecimal digits. Numbers that overflow f64, and numbers other than 0 that would round to 0, are
/// refused.
/// @throws InvalidArgument, naming the option, the accepted numbers and the text
double parse_real(const std::string& option, const std::string& text);

/// Adds an option that takes one integer of the range. `target`: a T, or an std::optional of one.
template <class T, class Target>
CLI::Option* add_integer(CLI::App& app, const std::string& name, Target& target, IntegerRange<T> range,
                         const std::string& help) {
  static_assert(std::is_same_v<Target, T> || std::is_same_v<Target, std::optional<T>>);
  const auto parse = [name, &target, range](const CLI::results_t& texts) {
    target = parse_integer<T>(name, texts.back(), range);
    return true;
  };
  return app.add_option(name, CLI::callback_t(parse), help)->type_name("INT");
}

/// Adds an option that takes one real number.
inline CLI::Option* add_real(CLI::App& app, const std::string& name, double& target, const std::string& help) {
  const auto parse = [name, &target](const CLI::results_t& texts) {
    target = parse_real(name, texts.back());
    return true;
  };
  return app.add_option(name, CLI::callback_t(parse), help)->type_name("NUMBER");
}

}  // namespace tilewright::cli
