// Translates C++ exceptions to Python exceptions, whose classes are defined in tilewright/errors.py.
#include <nanobind/nanobind.h>

#include <cstring>
#include <exception>

#include "python/bindings/module.hpp"
#include "python/bindings/unlocked.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/engine/refused_design.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

nb::object exception_class(const char* name) { return nb::module_::import_("tilewright.errors").attr(name); }

// A message may contain a compiler's log, which need not be valid UTF-8.
nb::object message_of(const std::exception& error) {
  return nb::steal(PyUnicode_DecodeUTF8(error.what(), static_cast<Py_ssize_t>(std::strlen(error.what())), "replace"));
}

void raise(const char* name, const std::exception& error) {
  PyErr_SetObject(exception_class(name).ptr(), message_of(error).ptr());
}

void raise(const DriverError& error) {
  const nb::object type = exception_class("DriverError");
  PyErr_SetObject(type.ptr(), type(message_of(error), error.code()).ptr());
}

void raise(const engine::RefusedDesign& error) {
  nb::dict codes, reasons;
  for (const registry::RefusedKernel& family : error.refused()) {
    codes[family.name.c_str()] = nb::str(name(family.refusal.code).data(), name(family.refusal.code).size());
    reasons[family.name.c_str()] = nb::str(family.reason().c_str());
  }
  const nb::object type = exception_class("RefusedDesign");
  PyErr_SetObject(type.ptr(), type(message_of(error), codes, reasons).ptr());
}

// Derived classes are caught before their bases.
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (PythonInterruption& interruption) {
    interruption.error.restore();
  } catch (const engine::RefusedDesign& error) {
    raise(error);
  } catch (const InvalidArgument& error) {
    raise("InvalidArgument", error);
  } catch (const CompileError& error) {
    raise("CompileError", error);
  } catch (const ToolchainNotFound& error) {
    raise("ToolchainNotFound", error);
  } catch (const DriverError& error) {
    raise(error);
  } catch (const OutOfMemory& error) {
    raise("OutOfMemory", error);
  } catch (const EmulationError& error) {
    raise("EmulationError", error);
  } catch (const Error& error) {
    raise("Error", error);
  } catch (const InternalError& error) {
    raise("InternalError", error);
  } catch (const nb::cast_error&) {
    PyErr_SetString(PyExc_TypeError, "an argument, or the value that one of its methods returned, has the wrong type");
  }
}

}  // namespace

void bind_errors() { nb::register_exception_translator(translate); }

}  // namespace tilewright::python
