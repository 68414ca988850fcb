// "Cannot, because": a refusal is a value that carries its reason and the number that failed.
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

/// What a refusal is about, for programs; people read the reason.
enum class RefusalCode : std::uint8_t {
  other,
  types,         // element, accumulator or compute types
  shape,         // ranks, extents, batches
  strides,       // layouts, leading dimensions
  alignment,     // of addresses and strides
  overlap,       // outputs with inputs or with themselves
  memory,        // null pointers, devices that differ
  scalars,       // values of alpha, beta and their like
  epilogue,      // its graph, its tensors
  math,          // how products are formed
  architecture,  // not this GPU
  resources,     // shared memory, registers, threads, workspace
  design,        // numbers of a tile that do not fit each other
  filter,        // the caller's own
  duplicate,     // a name that is taken
  artifact,      // compiled for another kernel or device
  operation,     // the kernel computes another
  provider,      // it failed
};

/// "alignment"
std::string_view name(RefusalCode code);

/// Why something is refused.
struct Refusal {
  std::string reason;  // one line, lower case, with the number: "k must be a multiple of 8, got 63"
  RefusalCode code = RefusalCode::other;
  std::string operand = {};                // "A", "bias"; empty where it is none in particular
  std::vector<std::int64_t> numbers = {};  // the integers of the reason, in its order

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

/// Yes, or no with a reason. Converts to true when supported.
class [[nodiscard]] Support {
 public:
  Support() = default;
  Support(Refusal refusal) : refusal_(std::move(refusal)) {}  // NOLINT: a refusal is a Support

  explicit operator bool() const { return !refusal_; }
  /// Empty when supported.
  const std::string& reason() const;
  /// @pre it was refused
  const Refusal& refusal() const;

  /// @throws InvalidArgument with the reason when refused.
  void or_throw() const {
    if (refusal_) throw InvalidArgument(refusal_->reason);
  }

 private:
  std::optional<Refusal> refusal_;
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
    TILEWRIGHT_CHECK(state_.index() == 0, "value of a refused result: {}", reason());
    return std::get<0>(state_);
  }

  std::variant<T, Refusal> state_;
};

}  // namespace tilewright
