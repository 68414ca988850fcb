#include "tools/cli/type_names.hpp"

#include <fmt/core.h>

#include <optional>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::cli {

DType parse_type(const std::string& option, const std::string& text) {
  if (const std::optional<DType> type = parse_dtype(text)) return *type;
  std::string known;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (const auto type = static_cast<DType>(i); bits(type) >= 8) known += fmt::format(" {}", name(type));
  }
  throw InvalidArgument(fmt::format("{}: unknown type '{}'; the types are{}", option, printable(text, 40), known));
}

op::MathOperation parse_math(const std::string& option, const std::string& text) {
  if (const std::optional<op::MathOperation> math = op::parse_math_operation(text)) return *math;
  throw InvalidArgument(
      fmt::format("{}: unknown operation '{}': it must be {}", option, printable(text, 40), kMathOperationNames));
}

}  // namespace tilewright::cli
