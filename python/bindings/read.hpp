// What Python gives, as values of C++: refused with its name where it is of another type or does not fit.
#pragma once

#include <nanobind/nanobind.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

namespace tilewright::python {

/// Of a str. @throws TypeError naming `what` for other objects, InvalidArgument for a str with lone surrogates
std::string read_text(nanobind::handle object, const char* what);

/// Of a str, bytes or os.PathLike, as the file system has it: what os.fsdecode() could not decode is kept.
/// @throws TypeError, or InvalidArgument for text that no file can have as its name
std::string read_path(nanobind::handle object, const char* what);

/// Of an int, or of what has __index__(). @throws TypeError, or InvalidArgument with the number and the bounds
std::int64_t read_signed(nanobind::handle object, const char* what, std::int64_t least, std::int64_t most);
/// An address or another number of 64 bits without a sign.
std::uint64_t read_unsigned(nanobind::handle object, const char* what);

template <std::integral Integer>
requires(sizeof(Integer) < sizeof(std::int64_t) || std::signed_integral<Integer>) Integer
    read_integer(nanobind::handle object, const char* what) {
  using Limits = std::numeric_limits<Integer>;
  return static_cast<Integer>(read_signed(object, what, Limits::min(), Limits::max()));
}

/// Of a float, or of what has __float__(). @throws TypeError
double read_number(nanobind::handle object, const char* what);

/// The pairs of a mapping. @throws TypeError
nanobind::list read_items(nanobind::handle mapping, const char* what);

/// An object in a message: what repr() says, cut, and readable whatever is in it.
std::string shown(nanobind::handle object);
/// The same of str().
std::string as_text(nanobind::handle object);

/// A parameter that is a str: read when it has a name to be refused by.
class Text {
 public:
  Text() = default;
  explicit Text(nanobind::handle str) : str_(nanobind::borrow(str)) {}
  std::string read(const char* what) const { return read_text(str_, what); }
  std::string path(const char* what) const { return read_path(str_, what); }

 private:
  nanobind::object str_;
};

}  // namespace tilewright::python

namespace nanobind::detail {

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
