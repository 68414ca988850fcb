// nanobind casters for integer tuples, coordinates, mode paths and tilers, which Python writes as integers, tuples and
// None:
//
//   IntTuple   8, (2, 3), ((2, 2), 8), ScaledBasis(64, 1); a bool is refused
//   Coord      the same, with None for a whole mode (CuTe's `_`)
//   Basis      a mode, or a path of modes: 1, (0, 2)
//   Tiler      a layout; n for n:1; None for a whole mode; a tuple of these, one for each mode
//
// A caster must not throw. If an object has the right type but an invalid value (an integer of more than 63 bits), the
// caster accepts it and throws InvalidArgument when the value is read, so that the caller does not get a TypeError.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/layout/layout.hpp"
#include "tilewright/layout/tiler.hpp"

namespace tilewright::python {

/// A leaf that is a scaled basis element, for example 64@1, as a Python object.
struct ScaledBasis {
  std::int64_t value = 1;
  layout::Basis mode;
  bool operator==(const ScaledBasis&) const = default;
};

/// A coordinate that may contain `_`.
struct Coord {
  layout::IntTuple tree;
};

/// These return nullopt if the object has another type. @throws InvalidArgument for a value that is out of range
std::optional<layout::IntTuple> int_tuple_of(nanobind::handle object);
std::optional<Coord> coord_of(nanobind::handle object);
std::optional<layout::Basis> basis_of(nanobind::handle object);
std::optional<layout::Tiler> tiler_of(nanobind::handle object);
/// Leaves become int, ScaledBasis or None.
nanobind::object to_python(const layout::IntTuple& t);
nanobind::object to_python(const layout::Tiler& tiler);
/// 1 for @1, and (0, 2) for @2@0.
nanobind::object to_python(const layout::Basis& basis);
/// The tuple (layout, offset).
nanobind::object to_python(const layout::LayoutAndOffset& part);

/// Base of the casters below: keeps an InvalidArgument that the conversion throws until the value is read.
template <class T>
class RefusingCaster {
 public:
  using Value = T;
  template <class U>
  using Cast = nanobind::detail::movable_cast_t<U>;
  template <class U>
  static constexpr bool can_cast() {
    return true;
  }
  explicit operator Value*() { return &get(); }
  explicit operator Value&() { return get(); }
  explicit operator Value&&() { return std::move(get()); }

 protected:
  bool take(std::optional<T> (*convert)(nanobind::handle), nanobind::handle object) noexcept {
    try {
      value_ = convert(object);
      return value_.has_value();
    } catch (const InvalidArgument& refused) {
      refusal_ = refused.what();
      return true;
    } catch (...) {
      return false;
    }
  }

 private:
  Value& get() {
    if (!value_) throw InvalidArgument(refusal_);
    return *value_;
  }

  std::optional<T> value_;
  std::string refusal_;
};

/// Returns a new reference, or nullptr with a Python exception set.
template <class T>
nanobind::handle to_python_or_null(const T& value) noexcept {
  try {
    return to_python(value).release();
  } catch (nanobind::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return {};
}

}  // namespace tilewright::python

namespace nanobind::detail {

template <>
struct type_caster<tilewright::layout::IntTuple> : tilewright::python::RefusingCaster<tilewright::layout::IntTuple> {
  static constexpr auto Name = const_name("tilewright.layout.IntTuple");
  bool from_python(handle object, std::uint32_t, cleanup_list*) noexcept {
    return take(tilewright::python::int_tuple_of, object);
  }
  static handle from_cpp(const Value& value, rv_policy, cleanup_list*) noexcept {
    return tilewright::python::to_python_or_null(value);
  }
};

template <>
struct type_caster<tilewright::python::Coord> : tilewright::python::RefusingCaster<tilewright::python::Coord> {
  static constexpr auto Name = const_name("tilewright.layout.Coord");
  bool from_python(handle object, std::uint32_t, cleanup_list*) noexcept {
    return take(tilewright::python::coord_of, object);
  }
  static handle from_cpp(const Value& value, rv_policy, cleanup_list*) noexcept {
    return tilewright::python::to_python_or_null(value.tree);
  }
};

template <>
struct type_caster<tilewright::layout::Basis> : tilewright::python::RefusingCaster<tilewright::layout::Basis> {
  static constexpr auto Name = io_name("int | collections.abc.Sequence[int]", "int | tuple[int, ...]");
  bool from_python(handle object, std::uint32_t, cleanup_list*) noexcept {
    return take(tilewright::python::basis_of, object);
  }
  static handle from_cpp(const Value& value, rv_policy, cleanup_list*) noexcept {
    return tilewright::python::to_python_or_null(value);
  }
};

template <>
struct type_caster<tilewright::layout::Tiler> : tilewright::python::RefusingCaster<tilewright::layout::Tiler> {
  static constexpr auto Name = const_name("tilewright.layout.Tiler");
  bool from_python(handle object, std::uint32_t, cleanup_list*) noexcept {
    return take(tilewright::python::tiler_of, object);
  }
  static handle from_cpp(const Value& value, rv_policy, cleanup_list*) noexcept {
    return tilewright::python::to_python_or_null(value);
  }
};

template <>
struct type_caster<tilewright::layout::LayoutAndOffset> {
  using Value = tilewright::layout::LayoutAndOffset;
  static constexpr auto Name = const_name("tuple[tilewright.layout.Layout, tilewright.layout.IntTuple]");
  static handle from_cpp(const Value& value, rv_policy, cleanup_list*) noexcept {
    return tilewright::python::to_python_or_null(value);
  }
};

}  // namespace nanobind::detail
