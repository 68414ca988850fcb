// Wraps C++ functions as overloads of functions of expressions.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/layout/function_table.hpp"

namespace tilewright::layout {

/// Conversion of a value to a parameter of type T: its name in signatures, whether a value converts, and the
/// conversion.
template <class T>
struct Argument;

template <>
struct Argument<std::int64_t> {
  static constexpr std::string_view kind = "integer";
  static bool accepts(const Value& value) {
    const IntTuple* t = std::get_if<IntTuple>(&value);
    return t != nullptr && t->is_integer();
  }
  static std::int64_t take(const Value& value) { return std::get<IntTuple>(value).value(); }
};

template <>
struct Argument<int> {
  static constexpr std::string_view kind = "integer";
  static bool accepts(const Value& value) {
    return Argument<std::int64_t>::accepts(value) && std::in_range<int>(Argument<std::int64_t>::take(value));
  }
  static int take(const Value& value) { return static_cast<int>(Argument<std::int64_t>::take(value)); }
};

template <>
struct Argument<IntTuple> {
  static constexpr std::string_view kind = "tuple";
  static bool accepts(const Value& value) { return std::holds_alternative<IntTuple>(value); }
  static const IntTuple& take(const Value& value) { return std::get<IntTuple>(value); }
};

/// A layout, or an integer n as the layout n:1.
template <>
struct Argument<Layout> {
  static constexpr std::string_view kind = "layout";
  static bool accepts(const Value& value) { return as_layout(value).has_value(); }
  static Layout take(const Value& value) { return *as_layout(value); }
};

/// A tiler, a layout, or a tuple of integers and `_`.
template <>
struct Argument<Tiler> {
  static constexpr std::string_view kind = "tiler";
  static bool accepts(const Value& value) { return as_tiler(value).has_value(); }
  static Tiler take(const Value& value) { return *as_tiler(value); }
};

template <>
struct Argument<Swizzle> {
  static constexpr std::string_view kind = "swizzle";
  static bool accepts(const Value& value) { return std::holds_alternative<Swizzle>(value); }
  static const Swizzle& take(const Value& value) { return std::get<Swizzle>(value); }
};

template <>
struct Argument<ComposedLayout> {
  static constexpr std::string_view kind = "swizzled layout";
  static bool accepts(const Value& value) { return std::holds_alternative<ComposedLayout>(value); }
  static const ComposedLayout& take(const Value& value) { return std::get<ComposedLayout>(value); }
};

template <>
struct Argument<LayoutAndOffset> {
  static constexpr std::string_view kind = "layout with an offset";
  static bool accepts(const Value& value) { return std::holds_alternative<LayoutAndOffset>(value); }
  static const LayoutAndOffset& take(const Value& value) { return std::get<LayoutAndOffset>(value); }
};

/// A list of modes: an integer or a flat tuple of integers.
template <>
struct Argument<std::vector<int>> {
  static constexpr std::string_view kind = "modes";
  static bool accepts(const Value& value) {
    const IntTuple* t = std::get_if<IntTuple>(&value);
    if (t == nullptr || t->rank() > max_modes) return false;
    for (int i = 0; i < t->rank(); ++i) {
      if (!(*t)[i].is_integer() || !std::in_range<int>((*t)[i].value())) return false;
    }
    return true;
  }
  static std::vector<int> take(const Value& value) {
    const IntTuple& t = std::get<IntTuple>(value);
    std::vector<int> modes;
    for (int i = 0; i < t.rank(); ++i) modes.push_back(static_cast<int>(t[i].value()));
    return modes;
  }
  static constexpr int max_modes = 64;
};

/// A path to a mode: an integer, or a flat tuple of integers, outermost mode first.
template <>
struct Argument<Basis> {
  static constexpr std::string_view kind = "path";
  static bool accepts(const Value& value) { return Argument<std::vector<int>>::accepts(value); }
  static Basis take(const Value& value) {
    Basis path;
    for (const int mode : Argument<std::vector<int>>::take(value)) path = path.child(mode);
    return path;
  }
};

template <class T>
Value to_value(T result) {
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    return IntTuple(std::int64_t{result});
  } else {
    return Value(std::move(result));
  }
}

/// The overload that calls `function` with arguments of these types.
template <class... Types, class F>
Overload overload_of(F function) {
  const auto call = [function]<std::size_t... I>(const std::vector<Value>& arguments, std::index_sequence<I...>) {
    return to_value(function(Argument<Types>::take(arguments[I])...));
  };
  return {{{Argument<Types>::kind, Argument<Types>::accepts}...}, false, [call](const std::vector<Value>& arguments) {
            return call(arguments, std::index_sequence_for<Types...>());
          }};
}

/// Two overloads, whose first parameter is a layout or a swizzled layout.
template <class... Rest, class F>
std::vector<Overload> overloads_of_layouts(F function) {
  return {overload_of<Layout, Rest...>(function), overload_of<ComposedLayout, Rest...>(function)};
}

/// The overload that calls `function` with a vector of one or more Ts.
template <class T, class F>
Overload overload_of_several(F function) {
  return {{{Argument<T>::kind, Argument<T>::accepts}}, true, [function](const std::vector<Value>& arguments) {
            std::vector<T> several;
            for (const Value& argument : arguments) several.push_back(Argument<T>::take(argument));
            return to_value(function(several));
          }};
}

/// Concatenates lists of overloads.
template <class... Lists>
std::vector<Overload> join(std::vector<Overload> first, const Lists&... lists) {
  (first.insert(first.end(), lists.begin(), lists.end()), ...);
  return first;
}

}  // namespace tilewright::layout
