// Refusals: values that say why something is not supported, with the number that is out of range.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/base/error.hpp"

namespace tilewright {

/// The category of a refusal, for programs. People read the reason.
enum class RefusalCode : std::uint8_t {
  other,
  types,         // element, accumulator or compute types
  shape,         // ranks, extents, batch counts
  strides,       // layouts, leading dimensions
  alignment,     // addresses or strides that are not aligned
  overlap,       // an output overlaps an input or itself
  memory,        // null pointers, operands on different devices
  scalars,       // values of alpha, beta or epilogue scalars
  epilogue,      // the epilogue graph or its tensors
  math,          // the math operation
  architecture,  // the target lacks a feature
  resources,     // shared memory, registers, threads, workspace
  design,        // inconsistent tile, warps, stages or cluster
  filter,        // the caller's filter rejected the kernel
  duplicate,     // the name is already registered
  artifact,      // compiled for another kernel or device
  operation,     // the kernel computes another
  provider,      // it failed
  promises,      // the kernel does not make a promise that the caller requires
};

/// "alignment"
std::string_view name(RefusalCode code);

/// Why something is refused.
struct Refusal {
  std::string reason;  // one line, lower case: "k must be a multiple of 8, got 63"
  RefusalCode code = RefusalCode::other;
  std::string operand = {};                // "A", "bias"; empty if no operand is to blame
  std::vector<std::int64_t> numbers = {};  // the integers in the reason, in the same order

  Refusal&& as(RefusalCode what) && {
    code = what;
    return std::move(*this);
  }
  Refusal&& of(std::string_view role) && {
    operand = role;
    return std::move(*this);
  }
  Refusal&& of(char role) && { return std::move(*this).of(std::string_view(&role, 1)); }
  bool operator==(const Refusal&) const = default;
};

namespace detail {
template <class T>
void collect_number(std::vector<std::int64_t>& numbers, const T& value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>)
    numbers.push_back(static_cast<std::int64_t>(value));
}
}  // namespace detail

template <class... Args>
[[nodiscard]] Refusal refuse(fmt::format_string<Args...> format, Args&&... args) {
  Refusal refusal;
  (detail::collect_number(refusal.numbers, std::as_const(args)), ...);
  refusal.reason = fmt::format(format, std::forward<Args>(args)...);
  return refusal;
}

/// Whether something is supported, with a Refusal if not. Converts to true when supported.
class [[nodiscard]] Support {
 public:
  Support() = default;
  Support(Refusal refusal) : refusal_(std::move(refusal)) {}  // NOLINT: a refusal is a Support

  explicit operator bool() const { return !refusal_; }
  /// Empty when supported.
  const std::string& reason() const;
  /// @pre not supported
  const Refusal& refusal() const;

  /// @throws InvalidArgument with the reason when refused.
  void or_throw() const {
    if (refusal_) throw InvalidArgument(refusal_->reason);
  }

 private:
  std::optional<Refusal> refusal_;
};

/// A value, or the Refusal that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT: a value is a Result
  Result(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {}  // NOLINT: a refusal is a Result

  explicit operator bool() const { return state_.index() == 0; }
  /// @pre the result holds a refusal
  const std::string& reason() const { return std::get<1>(state_).reason; }
  const Refusal& refusal() const { return std::get<1>(state_); }

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
    TILEWRIGHT_CHECK(state_.index() == 0, "access to the value of a refused result: {}", reason());
    return std::get<0>(state_);
  }

  std::variant<T, Refusal> state_;
};

}  // namespace tilewright
