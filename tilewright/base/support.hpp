// "Cannot, because": a refusal is a value that carries its reason and the number that failed.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "tilewright/base/error.hpp"

namespace tilewright {

/// Why something is refused. One line, lower case, with the number: "k must be a multiple of 8, got 63".
struct Refusal {
  std::string reason;
  bool operator==(const Refusal&) const = default;
};

template <class... Args>
[[nodiscard]] Refusal refuse(fmt::format_string<Args...> format, Args&&... args) {
  return Refusal{fmt::format(format, std::forward<Args>(args)...)};
}

/// Yes, or no with a reason. Converts to true when supported.
class [[nodiscard]] Support {
 public:
  Support() = default;
  Support(Refusal refusal) : reason_(std::move(refusal.reason)), supported_(false) {}  // NOLINT: a refusal is a Support

  explicit operator bool() const { return supported_; }
  /// Empty when supported.
  const std::string& reason() const { return reason_; }

  /// @throws InvalidArgument with the reason when refused.
  void or_throw() const {
    if (!supported_) throw InvalidArgument(reason_);
  }

 private:
  std::string reason_;
  bool supported_ = true;
};

/// A value, or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT: a value is a Result
  Result(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {}  // NOLINT: a refusal is a Result

  explicit operator bool() const { return state_.index() == 0; }
  /// @pre the result holds a refusal
  const std::string& reason() const { return std::get<1>(state_).reason; }
  Refusal refusal() const { return std::get<1>(state_); }

  /// @pre the result holds a value
  const T& operator*() const& { return checked(); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  const T* operator->() const { return &checked(); }

  /// @throws InvalidArgument with the reason when refused.
  T value_or_throw() && {
    if (!*this) throw InvalidArgument(reason());
    return std::get<0>(std::move(state_));
  }

 private:
  const T& checked() const {
    TILEWRIGHT_CHECK(state_.index() == 0, "value of a refused result: {}", reason());
    return std::get<0>(state_);
  }

  std::variant<T, Refusal> state_;
};

}  // namespace tilewright
