#include "python/bindings/read.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

[[noreturn]] void throw_wrong_type(nb::handle object, const char* what, const char* expected) {
  throw nb::type_error(
      fmt::format("{} must be {}, got {}", what, expected, as_text(object.type().attr("__name__"))).c_str());
}

/// A str in UTF-8, with lone surrogates escaped.
std::string escaped(nb::handle str) {
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(str.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

nb::object index_of(nb::handle object, const char* what) {
  if (PyIndex_Check(object.ptr()) == 0) throw_wrong_type(object, what, "an integer");
  PyObject* const index = PyNumber_Index(object.ptr());
  if (index == nullptr) throw nb::python_error();
  return nb::steal(index);
}

/// Whether the preceding conversion failed with an OverflowError, which is cleared.
bool overflowed() {
  if (PyErr_Occurred() == nullptr) return false;
  if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw nb::python_error();
  PyErr_Clear();
  return true;
}

}  // namespace

std::string read_text(nb::handle object, const char* what) {
  if (PyUnicode_Check(object.ptr()) == 0) throw_wrong_type(object, what, "a str");
  Py_ssize_t size = 0;
  if (const char* const bytes = PyUnicode_AsUTF8AndSize(object.ptr(), &size))
    return {bytes, static_cast<std::size_t>(size)};
  PyErr_Clear();
  throw InvalidArgument(
      fmt::format("{} contains a lone surrogate, which is no character: '{}'", what, printable(escaped(object))));
}

std::string read_path(nb::handle object, const char* what) {
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(object.ptr(), &encoded) != 0) {
    const nb::object bytes = nb::steal(encoded);
    return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
  }
  if (PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
    PyErr_Clear();
    throw_wrong_type(object, what, "a str or an os.PathLike");
  }
  if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw nb::python_error();
  PyErr_Clear();  // the error says that a character cannot be encoded, or is NUL
  throw InvalidArgument(fmt::format("{} is no valid file name: '{}'", what, printable(as_text(object))));
}

void check_file_exists(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0 || errno != ENOENT) return;
  const nb::object type = nb::module_::import_("tilewright.errors").attr("FileNotFound");
  const nb::object name =
      nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
  PyErr_SetObject(type.ptr(), type(ENOENT, "No such file or directory", name).ptr());
  throw nb::python_error();
}

std::int64_t read_signed(nb::handle object, const char* what, std::int64_t least, std::int64_t most) {
  const nb::object index = index_of(object, what);
  const std::int64_t value = PyLong_AsLongLong(index.ptr());
  if ((value == -1 && overflowed()) || value < least || value > most) {
    throw InvalidArgument(fmt::format("{} is {}, must be {} to {}", what, printable(as_text(index)), least, most));
  }
  return value;
}

std::uint64_t read_unsigned(nb::handle object, const char* what) {
  const nb::object index = index_of(object, what);
  const std::uint64_t value = PyLong_AsUnsignedLongLong(index.ptr());
  if (value == static_cast<std::uint64_t>(-1) && overflowed()) {
    throw InvalidArgument(fmt::format("{} is {}, must be 0 to {}", what, printable(as_text(index)), ~std::uint64_t{0}));
  }
  return value;
}

double read_number(nb::handle object, const char* what) {
  const double value = PyFloat_AsDouble(object.ptr());
  if (value != -1.0 || PyErr_Occurred() == nullptr) return value;
  if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
    PyErr_Clear();
    throw InvalidArgument(fmt::format("{} is too large for a float, got {}", what, shown(object)));
  }
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
  PyErr_Clear();
  throw_wrong_type(object, what, "a number");
}

nb::list read_items(nb::handle mapping, const char* what) {
  const nb::object items = nb::steal(PyMapping_Items(mapping.ptr()));
  if (items.is_valid()) return nb::list(items);
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw nb::python_error();
  PyErr_Clear();
  throw_wrong_type(mapping, what, "a dict");
}

std::string shown(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Repr(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  return printable(escaped(text));
}

std::string as_text(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  return escaped(text);
}

}  // namespace tilewright::python
