// The functions below tilewright/checked.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "python/bindings/module.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

/// Makes constructors of `kind` and of its subclasses report wrong arguments through `explain(name of the class,
/// message, arguments, keywords)`, which raises an exception or returns; the arguments of `__new__` begin with the
/// class. They are functions of nanobind, because nanobind calls the last constructor that it has defined itself, not
/// one that is assigned to the class.
void explain_constructor(const nb::object& kind, const nb::object& explain, bool is_new) {
  const char* const name = is_new ? "__new__" : "__init__";
  const nb::object construct = kind.attr(name);
  nb::delattr(kind, name);  // otherwise the next would become an overload of it
  const auto report = [explain](const nb::python_error& error, nb::handle type, const nb::args& arguments,
                                const nb::kwargs& keywords) {
    if (error.matches(PyExc_TypeError)) explain(type.attr("__name__"), nb::str(error.value()), arguments, keywords);
  };
  if (is_new) {
    nb::cpp_function_def(
        [kind, construct, report](const nb::args& arguments, const nb::kwargs& keywords) {
          try {
            return construct(*arguments, **keywords);
          } catch (const nb::python_error& error) {
            // nanobind passes no class if the caller gave no argument.
            report(error, arguments.empty() ? nb::handle(kind) : nb::handle(arguments[0]), arguments, keywords);
            throw;
          }
        },
        nb::scope(kind), nb::name(name));
    return;
  }
  nb::cpp_function_def(
      [construct, report](nb::handle self, const nb::args& arguments, const nb::kwargs& keywords) {
        try {
          construct(self, *arguments, **keywords);
        } catch (const nb::python_error& error) {
          report(error, self.type(), arguments, keywords);
          throw;
        }
      },
      nb::scope(kind), nb::name(name), nb::is_method());
}

/// Makes the class, which has no constructor, say so by its own name; `origin` says where such objects come from.
void refuse_construction(const nb::object& kind, const std::string& origin) {
  nb::cpp_function_def(
      [origin](nb::handle self, const nb::args&, const nb::kwargs&) {
        const std::string name = nb::cast<std::string>(self.type().attr("__name__"));
        throw nb::type_error((name + " has no constructor: " + origin).c_str());
      },
      nb::scope(kind), nb::name("__init__"), nb::is_method());
}

}  // namespace

void bind_checked(nb::module_& module) {
  module.def("_refuse_construction", &refuse_construction, nb::arg("kind"), nb::arg("origin"));
  // Whether __init__() of the object's class, if it derives from one of the extension's, has called that of its base.
  module.def(
      "_is_initialised", [](nb::handle self) { return !nb::inst_check(self) || nb::inst_ready(self); },
      nb::arg("self").none());
  module.def("_explain_constructor", &explain_constructor, nb::arg("kind"), nb::arg("explain"), nb::arg("is_new"));
}

}  // namespace tilewright::python
