#include "tilewright/program/value.hpp"

#include <fmt/format.h>

#include "tilewright/base/error.hpp"

namespace tilewright::program {

std::string_view name(RegisterType type) {
  switch (type) {
    case RegisterType::b16:
      return "b16";
    case RegisterType::b32:
      return "b32";
    case RegisterType::b64:
      return "b64";
    case RegisterType::f32:
      return "f32";
    case RegisterType::f64:
      return "f64";
  }
  return "";
}

Value Value::slice(std::int32_t begin, std::int32_t length) const {
  if (begin < 0 || length < 1 || begin + length > count) {
    throw InvalidArgument(fmt::format("registers {} to {} of a value that has {}", begin, begin + length - 1, count));
  }
  return {id, type, first + begin, length, kernel};
}

std::string to_string(const Value& value, std::int32_t whole) {
  if (value.count == whole) return fmt::format("v{}", value.id);
  if (value.count == 1) return fmt::format("v{}[{}]", value.id, value.first);
  return fmt::format("v{}[{}:{}]", value.id, value.first, value.first + value.count);
}

}  // namespace tilewright::program
