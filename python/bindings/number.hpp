// nanobind caster for layout::Number: an int, or a tilewright.program.Number. A bool is refused.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>

#include "tilewright/layout/number.hpp"

namespace tilewright::python {

/// A Number as a Python object, which keeps its scope alive.
struct NumberObject {
  layout::Number number;
  std::shared_ptr<layout::NumberScope> scope;  // null for a static integer
};

/// Makes a scope known, so that its Numbers can be returned to Python.
void remember_scope(const std::shared_ptr<layout::NumberScope>& scope);
NumberObject number_object(const layout::Number& number);
/// nullopt for an object that is neither an integer of 64 bits nor a NumberObject.
std::optional<layout::Number> number_of(nanobind::handle object) noexcept;

/// Binds the class Number and the functions on Numbers in the submodule `program`.
void bind_number(nanobind::module_& module);

}  // namespace tilewright::python

namespace nanobind::detail {

template <>
struct type_caster<tilewright::layout::Number> {
  using Value = tilewright::layout::Number;
  static constexpr auto Name =
      io_name("int | tilewright._tilewright.program.Number", "tilewright._tilewright.program.Number");
  template <class T>
  using Cast = movable_cast_t<T>;
  template <class T>
  static constexpr bool can_cast() {
    return true;
  }
  explicit operator Value*() { return &value; }
  explicit operator Value&() { return value; }
  explicit operator Value&&() { return std::move(value); }

  bool from_python(handle object, std::uint32_t, cleanup_list*) noexcept {
    const auto number = tilewright::python::number_of(object);
    if (number) value = *number;
    return number.has_value();
  }
  static handle from_cpp(const Value& number, rv_policy, cleanup_list*) noexcept {
    try {
      return cast(tilewright::python::number_object(number)).release();
    } catch (python_error& error) {
      error.restore();
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return {};
  }

  Value value;
};

}  // namespace nanobind::detail
