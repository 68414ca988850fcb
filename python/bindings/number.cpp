// tilewright.program.Number: integers that a kernel computes, in expressions of Python's operators.
#include "python/bindings/number.hpp"

#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include <mutex>
#include <string>
#include <unordered_map>

#include "tilewright/base/error.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::python {
namespace {

using layout::Number;
using layout::NumberScope;

struct Scopes {
  std::mutex mutex;
  std::unordered_map<const NumberScope*, std::weak_ptr<NumberScope>> known;  // guarded by mutex
};
Scopes& scopes() {
  static Scopes scopes;
  return scopes;
}

bool truth(const NumberObject& self) {
  if (self.number.is_static()) return self.number.value() != 0;
  throw nb::type_error(
      fmt::format("'{}' is known only when the kernel runs, so Python cannot decide it: write `with k.If(condition):` "
                  "for `if`, both(a, b) for `and`, negation(a) for `not`, and a < b and b < c as two comparisons",
                  to_string(self.number))
          .c_str());
}

std::int64_t index(const NumberObject& self) {
  if (self.number.is_static()) return self.number.value();
  throw nb::type_error(
      fmt::format("'{}' is known only when the kernel runs: it is no Python integer", to_string(self.number)).c_str());
}

/// a // b, which Python rounds down. The operators of C round static integers to 0; others are not negative.
Number floor_quotient(const Number& a, const Number& b) {
  const bool rounds_up =
      a.is_static() && b.is_static() && b.value() != 0 && (a % b).value() != 0 && (a.value() < 0) != (b.value() < 0);
  return rounds_up ? a / b - 1 : a / b;
}
Number floor_remainder(const Number& a, const Number& b) {
  const bool has_other_sign =
      a.is_static() && b.is_static() && b.value() != 0 && (a % b).value() != 0 && (a.value() < 0) != (b.value() < 0);
  return has_other_sign ? a % b + b : a % b;
}

Number difference_from(const Number& b, const Number& a) { return a - b; }

}  // namespace

void remember_scope(const std::shared_ptr<NumberScope>& scope) {
  Scopes& all = scopes();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.known, [](const auto& each) { return each.second.expired(); });
  all.known[scope.get()] = scope;
}

NumberObject number_object(const Number& number) {
  if (number.is_static()) return {number, nullptr};
  Scopes& all = scopes();
  const std::lock_guard lock(all.mutex);
  const auto found = all.known.find(number.node()->scope);
  std::shared_ptr<NumberScope> scope = found == all.known.end() ? nullptr : found->second.lock();
  if (scope == nullptr) throw InternalError("the scope of a Number is not known to Python");
  return {number, std::move(scope)};
}

std::optional<Number> number_of(nb::handle object) noexcept {
  if (const NumberObject* self = nullptr; nb::try_cast(object, self) && self != nullptr) return self->number;
  if (PyBool_Check(object.ptr()) != 0 || PyIndex_Check(object.ptr()) == 0) return std::nullopt;
  PyObject* const integer = PyNumber_Index(object.ptr());
  int overflows = 0;
  const long long value = integer == nullptr ? 0 : PyLong_AsLongLongAndOverflow(integer, &overflows);
  const bool failed = integer == nullptr || PyErr_Occurred() != nullptr;
  Py_XDECREF(integer);
  if (failed) PyErr_Clear();
  if (failed || overflows != 0) return std::nullopt;
  return Number(static_cast<std::int64_t>(value));
}

void bind_number(nb::module_& module) {
  nb::class_<NumberObject>(
      module, "Number",
      "An integer of a kernel: static, or an expression of launch arguments, special registers and loop counters. "
      "Expressions are simplified, and know a divisor and a range. + - * // % << >> & ^ | compute others; all operands "
      "but those of + - * must be at least 0. < <= > >= == are conditions, Numbers that are 1 or 0. A condition "
      "that is known only when the kernel runs has no bool(): use Kernel.If(). Kernel.launch(), Kernel.thread and "
      "loops make Numbers.")
      .def(
          "__add__", [](const Number& a, const Number& b) { return a + b; }, nb::is_operator())
      .def(
          "__radd__", [](const Number& a, const Number& b) { return b + a; }, nb::is_operator())
      .def(
          "__sub__", [](const Number& a, const Number& b) { return a - b; }, nb::is_operator())
      .def("__rsub__", &difference_from, nb::is_operator())
      .def(
          "__mul__", [](const Number& a, const Number& b) { return a * b; }, nb::is_operator())
      .def(
          "__rmul__", [](const Number& a, const Number& b) { return b * a; }, nb::is_operator())
      .def("__floordiv__", &floor_quotient, nb::is_operator())
      .def(
          "__truediv__",
          [](const Number& a, const Number& b) -> Number {
            throw nb::type_error(
                fmt::format("Numbers are divided by //: write ({}) // ({})", to_string(a), to_string(b)).c_str());
          },
          nb::is_operator())
      .def(
          "__rfloordiv__", [](const Number& a, const Number& b) { return floor_quotient(b, a); }, nb::is_operator())
      .def("__mod__", &floor_remainder, nb::is_operator())
      .def(
          "__rmod__", [](const Number& a, const Number& b) { return floor_remainder(b, a); }, nb::is_operator())
      .def(
          "__lshift__", [](const Number& a, const Number& b) { return a << b; }, nb::is_operator())
      .def(
          "__rlshift__", [](const Number& a, const Number& b) { return b << a; }, nb::is_operator())
      .def(
          "__rshift__", [](const Number& a, const Number& b) { return a >> b; }, nb::is_operator())
      .def(
          "__rrshift__", [](const Number& a, const Number& b) { return b >> a; }, nb::is_operator())
      .def(
          "__and__", [](const Number& a, const Number& b) { return a & b; }, nb::is_operator())
      .def(
          "__rand__", [](const Number& a, const Number& b) { return b & a; }, nb::is_operator())
      .def(
          "__xor__", [](const Number& a, const Number& b) { return a ^ b; }, nb::is_operator())
      .def(
          "__rxor__", [](const Number& a, const Number& b) { return b ^ a; }, nb::is_operator())
      .def(
          "__or__", [](const Number& a, const Number& b) { return a | b; }, nb::is_operator())
      .def(
          "__ror__", [](const Number& a, const Number& b) { return b | a; }, nb::is_operator())
      .def("__neg__", [](const Number& a) { return 0 - a; })
      .def(
          "__lt__", [](const Number& a, const Number& b) { return less(a, b); }, nb::is_operator())
      .def(
          "__le__", [](const Number& a, const Number& b) { return less_equal(a, b); }, nb::is_operator())
      .def(
          "__gt__", [](const Number& a, const Number& b) { return less(b, a); }, nb::is_operator())
      .def(
          "__ge__", [](const Number& a, const Number& b) { return less_equal(b, a); }, nb::is_operator())
      .def(
          "__eq__", [](const Number& a, const Number& b) { return equal(a, b); }, nb::is_operator(),
          nb::sig("def __eq__(self, other: int | Number) -> Number"))
      .def(
          "__ne__", [](const Number& a, const Number& b) { return negation(equal(a, b)); }, nb::is_operator(),
          nb::sig("def __ne__(self, other: int | Number) -> Number"))
      .def("__hash__",
           [](const NumberObject& self) {
             return self.number.is_static() ? std::hash<std::int64_t>()(self.number.value())
                                            : std::hash<const void*>()(self.number.node());
           })
      .def("__bool__", &truth)
      .def("__index__", &index, "The integer, if it is static.")
      .def("__int__", &index)
      .def_prop_ro("is_static", [](const NumberObject& self) { return self.number.is_static(); })
      .def_prop_ro(
          "divisor", [](const NumberObject& self) { return self.number.divisor(); },
          "Every value is a multiple of it; 0 for 0.")
      .def_prop_ro(
          "lower", [](const NumberObject& self) { return self.number.lower(); }, "The least possible value.")
      .def_prop_ro(
          "upper", [](const NumberObject& self) { return self.number.upper(); }, "The largest possible value.")
      .def("__str__", [](const NumberObject& self) { return to_string(self.number); })
      .def("__repr__", [](const NumberObject& self) { return fmt::format("Number({})", to_string(self.number)); });
  module.def(
      "ceil_div", [](const Number& a, const Number& b) { return ceil_div(a, b); }, "a"_a, "b"_a, "a / b, rounded up.");
  module.def(
      "minimum", [](const Number& a, const Number& b) { return minimum(a, b); }, "a"_a, "b"_a);
  module.def(
      "maximum", [](const Number& a, const Number& b) { return maximum(a, b); }, "a"_a, "b"_a);
  module.def(
      "less", [](const Number& a, const Number& b) { return less(a, b); }, "a"_a, "b"_a);
  module.def(
      "less_equal", [](const Number& a, const Number& b) { return less_equal(a, b); }, "a"_a, "b"_a);
  module.def(
      "equal", [](const Number& a, const Number& b) { return equal(a, b); }, "a"_a, "b"_a);
  module.def(
      "divides", [](const Number& a, const Number& b) { return divides(a, b); }, "a"_a, "b"_a,
      "Whether b is a multiple of a.");
  module.def(
      "both", [](const Number& a, const Number& b) { return both(a, b); }, "a"_a, "b"_a,
      "Whether both conditions hold.");
  module.def(
      "negation", [](const Number& a) { return negation(a); }, "condition"_a, "1 if the condition is 0, else 0.");
  module.def(
      "select", [](const Number& condition, const Number& a, const Number& b) { return select(condition, a, b); },
      "condition"_a, "a"_a, "b"_a, "a if the condition holds, else b.");
}

}  // namespace tilewright::python
