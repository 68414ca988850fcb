// Numbers as they are written on a command line: the whole text is one, in its range, or it is refused.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

namespace tilewright::cli {

/// The integers that an option takes.
template <class T>
struct IntegerRange {
  T least = 1;
  T most = std::numeric_limits<T>::max();
};

/// "-12" -> -12: decimal digits, with a minus sign where `least` is negative. Nothing else is accepted: no "+5", "1e3",
/// "0x10", spaces or empty text. None: `text` is no such number, or it is outside the range.
template <class T>
std::optional<T> read_integer(const std::string& text, IntegerRange<T> range);

/// The same. @throws InvalidArgument naming the option, the range and the text
template <class T>
T parse_integer(const std::string& option, const std::string& text, IntegerRange<T> range);

/// "-0.5", "1e-3" -> what f64 holds nearest; "nan", "inf" and "-inf". Refused: what integers refuse, numbers beyond the
/// range of f64, and those that are not 0 but nearer to 0 than every other number of f64.
/// @throws InvalidArgument naming the option, what it takes and the text
double parse_real(const std::string& option, const std::string& text);

/// Adds an option that takes one integer of the range. `target`: a T, or an std::optional of one.
template <class T, class Target>
CLI::Option* add_integer(CLI::App& app, const std::string& name, Target& target, IntegerRange<T> range,
                         const std::string& help) {
  static_assert(std::is_same_v<Target, T> || std::is_same_v<Target, std::optional<T>>);
  const auto parse = [name, &target, range](const std::string& text) { target = parse_integer<T>(name, text, range); };
  return app.add_option_function<std::string>(name, parse, help)->type_name("INT");
}

/// Adds an option that takes one real number.
inline CLI::Option* add_real(CLI::App& app, const std::string& name, double& target, const std::string& help) {
  const auto parse = [name, &target](const std::string& text) { target = parse_real(name, text); };
  return app.add_option_function<std::string>(name, parse, help)->type_name("NUMBER");
}

}  // namespace tilewright::cli
