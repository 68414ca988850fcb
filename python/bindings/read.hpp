// Converts Python objects to C++ values. Errors name the parameter (`what`), the type and the value that was given.
#pragma once

#include <nanobind/nanobind.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

namespace tilewright::python {

/// Reads a str. @throws TypeError for other objects, InvalidArgument for a str with lone surrogates
std::string read_text(nanobind::handle object, const char* what);

/// Reads a str, bytes or os.PathLike in the encoding of the file system; bytes that os.fsdecode() could not decode are
/// kept. @throws TypeError, or InvalidArgument for text that cannot be the name of a file
std::string read_path(nanobind::handle object, const char* what);

/// @throws FileNotFound of Python if there is no such file
void check_file_exists(const std::string& path);

/// Reads an int, or an object with __index__(). @throws TypeError, or InvalidArgument with the number and its bounds
std::int64_t read_signed(nanobind::handle object, const char* what, std::int64_t least, std::int64_t most);
/// The same for an unsigned 64-bit integer, such as an address.
std::uint64_t read_unsigned(nanobind::handle object, const char* what);

template <std::integral Integer>
requires(sizeof(Integer) < sizeof(std::int64_t) || std::signed_integral<Integer>) Integer
    read_integer(nanobind::handle object, const char* what) {
  using Limits = std::numeric_limits<Integer>;
  return static_cast<Integer>(read_signed(object, what, Limits::min(), Limits::max()));
}

/// Reads a float, or an object with __float__(). @throws TypeError, or InvalidArgument for an int that is too large
double read_number(nanobind::handle object, const char* what);

/// The (key, value) pairs of a mapping. @throws TypeError
nanobind::list read_items(nanobind::handle mapping, const char* what);

/// The object's repr() for a message, shortened and with characters escaped that cannot be printed.
std::string shown(nanobind::handle object);
/// The object's str(); lone surrogates are escaped.
std::string as_text(nanobind::handle object);

/// A str parameter of a bound function. It is read in the function, where its name is known for error messages.
class Text {
 public:
  Text() = default;
  explicit Text(nanobind::handle str) : str_(nanobind::borrow(str)) {}
  std::string read(const char* what) const { return read_text(str_, what); }
  std::string path(const char* what) const { return read_path(str_, what); }

 private:
  nanobind::object str_;
};

/// A number parameter of a bound function, which is read in the function, too.
class Real {
 public:
  Real() = default;
  explicit Real(nanobind::handle object) : object_(nanobind::borrow(object)) {}
  explicit Real(double value) : object_(nanobind::float_(value)) {}
  double read(const char* what) const { return read_number(object_, what); }
  nanobind::handle object() const { return object_; }

 private:
  nanobind::object object_;
};

}  // namespace tilewright::python

namespace nanobind::detail {

template <>
struct type_caster<tilewright::python::Real> {
  NB_TYPE_CASTER(tilewright::python::Real, const_name("float"))

  bool from_python(handle source, std::uint32_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
    value = tilewright::python::Real(source);
    return true;
  }
};

template <>
struct type_caster<tilewright::python::Text> {
  NB_TYPE_CASTER(tilewright::python::Text, const_name("str"))

  bool from_python(handle source, std::uint32_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    value = tilewright::python::Text(source);
    return true;
  }
};

}  // namespace nanobind::detail
